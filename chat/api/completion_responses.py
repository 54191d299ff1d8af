"""A chat completion and its fields, made of an answer's payloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rest_framework import serializers

from chat.answering.checking.citations import Marker, find_markers
from chat.api.serializers import AnswerSerializer, QuestionChoiceSerializer
from chat.pages.answer_text import whole_text
from retrieval.passage_address import passage_url

Payload = Mapping[str, Any]


_CHARACTERS_PER_TOKEN = 4


_OFFSETS = ("marker_start", "marker_end", "marked_start", "marked_end")


class CompletionSerializer(AnswerSerializer):
    """OpenAI's completion, with all fields that `ask` returns."""

    id = serializers.CharField()
    object = serializers.CharField()
    created = serializers.IntegerField()
    model = serializers.CharField()
    choices = serializers.ListField(  # type: ignore[assignment]  # OpenAI's, in place of `ask`'s
        child=serializers.DictField(), help_text="One; its `message` has `content`, `annotations` and `citations`."
    )
    question_choices = QuestionChoiceSerializer(many=True, help_text="What `ask` calls `choices`.")
    usage = serializers.DictField(help_text="With `estimated`, reckoned from the texts' length.")
    passages = serializers.ListField(child=serializers.DictField(), help_text="The sources, by the number of a marker.")
    ignored = serializers.ListField(child=serializers.CharField(), help_text="What was sent and had no effect.")


@dataclass(frozen=True, slots=True)
class ChatCompletion:
    """The fields that all chunks of one completion share; ``site`` has no closing slash."""

    id: str
    created: int
    model: str
    question: str
    site: str
    ignored: Sequence[str] = ()
    lists_sources: bool = False

    def whole(self, answer: Payload, sources: Sequence[Payload]) -> dict[str, Any]:
        """Return the completion with an answer of chat.streaming.payloads.completed."""
        answer, sources = number_in_order(answer, sources, {})
        message = {"role": "assistant", "content": self.content(answer), "refusal": None, **self.cite(answer)}
        choice = {"index": 0, "message": message, "finish_reason": _name_ending(answer), "logprobs": None}
        usage = self.usage(answer, sources)
        return {**self._build_envelope("chat.completion", [choice]), "usage": usage, **self.beside(answer, sources)}

    def content(self, answer: Payload) -> str:
        """Return the answer, its notice and perhaps its sources as text."""
        cited = [each["url_citation"] for each in self.cite(answer)["annotations"]] if self.lists_sources else []
        sources = "\n".join(f"[{at}] {each['title']}: {each['url']}" for at, each in enumerate(cited, 1))
        return "\n\n".join(filter(None, (whole_text(answer), answer["notice"], sources)))

    def chunk(self, delta: Payload, finish_reason: str | None = None, **beside: Any) -> dict[str, Any]:
        """Return a piece of the answer; ``beside`` are fields outside the protocol."""
        choice = {"index": 0, "delta": dict(delta), "finish_reason": finish_reason, "logprobs": None}
        return {**self._build_envelope("chat.completion.chunk", [choice]), **beside}

    def usage(self, answer: Payload, sources: Sequence[Payload]) -> dict[str, Any]:
        """Return the used tokens, estimated without a model."""
        counted = answer["usage"] or {
            "prompt_tokens": _estimate_tokens([self.question, *(source["content"] for source in sources)]),
            "completion_tokens": _estimate_tokens([whole_text(answer)]),
            "estimated": True,
        }
        return {**counted, "total_tokens": counted["prompt_tokens"] + counted["completion_tokens"]}

    def _build_envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}

    def beside(self, answer: Payload, sources: Sequence[Payload]) -> dict[str, Any]:
        """Return all fields that `ask` returns.

        `usage` and `choices` have other meanings in the protocol, and `sources` in Open WebUI.
        """
        known = {name: value for name, value in answer.items() if name not in ("usage", "choices")}
        own = {"question_choices": answer["choices"], "passages": list(sources), "ignored": list(self.ignored)}
        return {**known, **own}

    def cite(self, answer: Payload) -> dict[str, Any]:
        """Return the citations, and annotations as for web pages: the n-th belongs to number n."""
        first = {cited["marker"]: cited for cited in reversed(answer["citations"])}
        annotations = []
        for _, cited in sorted(first.items()):
            document = cited["document"]
            # Deleted documents keep their position in the list.
            url = f"{self.site}{passage_url(document['id'], cited['start'], cited['end']) or '/'}"
            span = {"start_index": cited["marker_start"], "end_index": cited["marker_end"]}
            annotations.append(
                {"type": "url_citation", "url_citation": {**span, "title": document["title"], "url": url}}
            )
        return {"annotations": annotations, "citations": answer["citations"]}


def _name_ending(answer: Payload) -> str:
    return "length" if answer["cut_off"] else "stop"


def _estimate_tokens(texts: Iterable[str]) -> int:
    return sum(-(-len(text) // _CHARACTERS_PER_TOKEN) for text in texts)


def number(text: str, markers: Iterable[Marker], numbers: dict[int, int]) -> tuple[str, list[tuple[int, int]]]:
    """Assign numbers from 1 to the ``markers`` in order of appearance.

    Return the text, and pairs of a marker's end and the shift behind it; extend ``numbers`` (old to new).
    """
    written, moved = text, [(0, 0)]
    for marker in markers:
        by, sign = moved[-1][1], f"[{numbers.setdefault(marker.number, len(numbers) + 1)}]"
        written = written[: marker.start + by] + sign + written[marker.end + by :]
        moved.append((marker.end, by + len(sign) - (marker.end - marker.start)))
    return written, moved


def number_in_order(
    answer: Payload, sources: Sequence[Payload], numbers: dict[int, int]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the answer and its sources, numbered in order of appearance.

    Clients show the n-th annotation for ``[n]``. ``numbers`` were used in the stream.
    """
    places = sorted({(cited["marker_start"], cited["marker_end"], cited["marker"]) for cited in answer["citations"]})
    # A stopped answer has markers but no citations.
    markers = [Marker(marker, *span) for *span, marker in places] or find_markers(answer["answer"])
    text, moved = number(answer["answer"], markers, numbers)
    for source in sources:
        numbers.setdefault(source["marker"], len(numbers) + 1)

    def renumber(row: Payload, *offsets: str) -> dict[str, Any]:
        found = {name: row[name] for name in offsets if row[name] is not None}
        shifted = {name: at + next(by for end, by in reversed(moved) if end <= at) for name, at in found.items()}
        return {**row, **shifted, **({"marker": numbers.get(row["marker"], row["marker"])} if "marker" in row else {})}

    statements = [
        {**renumber(each, "start", "end"), "markers": [numbers.get(marker, marker) for marker in each["markers"]]}
        | ({"best": renumber(each["best"])} if each["best"] else {})
        for each in answer["statements"]
    ]
    citations = [renumber(cited, *_OFFSETS) for cited in answer["citations"]]
    ordered = sorted(map(renumber, sources), key=itemgetter("marker"))
    return {**answer, "answer": text, "citations": citations, "statements": statements}, ordered
