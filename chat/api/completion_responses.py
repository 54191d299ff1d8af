from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal, cast

from rest_framework import serializers

from chat.answering.checking.citations import CitationMarker, find_markers
from chat.api.openai_types import (
    Annotation,
    AskResponseFields,
    ChunkBody,
    CitationFields,
    CompletionBody,
    CompletionChoice,
    CompletionEnvelope,
    CompletionUsage,
    DeltaBody,
    MessageBody,
    UrlCitation,
)
from chat.api.serializers import AnswerSerializer, QuestionChoiceSerializer
from chat.pages.answer_text import render_whole_text
from chat.payload_types import (
    AnswerPayload,
    CitationPayload,
    CompletedEventPayload,
    SourcePayload,
    StatementPayload,
    UsagePayload,
)
from retrieval.passage_address import build_passage_url

_CHARACTERS_PER_TOKEN = 4
Ending = Literal["stop", "length"]
_NOTHING: Mapping[str, object] = {}


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
    """Builds one completion, whole or in chunks that all have the same id, time and model.

    ``site`` is the site's address without a slash at the end.
    """

    id: str
    created: int
    model: str
    question: str
    site: str
    ignored: Sequence[str] = ()
    lists_sources: bool = False

    def build_completion(self, answer: CompletedEventPayload, sources: Sequence[SourcePayload]) -> CompletionBody:
        answer, sources = renumber_citations(answer, sources, {})
        message: MessageBody = {
            "role": "assistant",
            "content": self.build_content(answer),
            "refusal": None,
            **self.build_citations(answer),
        }
        choice: CompletionChoice = {
            "index": 0,
            "message": message,
            "finish_reason": _choose_finish_reason(answer),
            "logprobs": None,
        }
        return {
            **self._build_envelope("chat.completion"),
            "choices": [choice],
            "usage": self.build_usage(answer, sources),
            **self.build_extra_fields(answer, sources),
        }

    def build_content(self, answer: CompletedEventPayload) -> str:
        """Return the answer and its notice as one text, with a list of the sources if ``lists_sources``."""
        cited = (
            [each["url_citation"] for each in self.build_citations(answer)["annotations"]] if self.lists_sources else []
        )
        sources = "\n".join(f"[{at}] {each['title']}: {each['url']}" for at, each in enumerate(cited, 1))
        return "\n\n".join(filter(None, (render_whole_text(answer), answer["notice"], sources)))

    def build_chunk(
        self, delta: DeltaBody, extra_fields: Mapping[str, object] = _NOTHING, finish_reason: Ending | None = None
    ) -> dict[str, object]:
        """Return a chunk with a piece of the answer. ``extra_fields`` are fields that the protocol does not have."""
        chunk: ChunkBody = {
            **self._build_envelope("chat.completion.chunk"),
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}],
        }
        return {**chunk, **extra_fields}

    def build_usage(self, answer: CompletedEventPayload, sources: Sequence[SourcePayload]) -> CompletionUsage:
        """Return the number of tokens, estimated from the texts if no model wrote the answer."""
        counted: UsagePayload = answer["usage"] or {
            "prompt_tokens": _estimate_tokens([self.question, *(source["content"] for source in sources)]),
            "completion_tokens": _estimate_tokens([render_whole_text(answer)]),
            "estimated": True,
        }
        prompt, completion = counted["prompt_tokens"], counted["completion_tokens"]
        return {
            **counted,
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    def _build_envelope(self, kind: str) -> CompletionEnvelope:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def build_extra_fields(self, answer: CompletedEventPayload, sources: Sequence[SourcePayload]) -> AskResponseFields:
        """Return the fields of the endpoint `ask`, renamed if their name has another meaning for OpenAI's clients."""
        known = {name: value for name, value in answer.items() if name not in ("usage", "choices")}
        return {
            **cast(AnswerPayload, known),
            "question_choices": answer["choices"],
            "passages": list(sources),
            "ignored": list(self.ignored),
        }

    def build_citations(self, answer: CompletedEventPayload) -> CitationFields:
        """Return the citations, and the same citations as annotations, OpenAI's form for web searches.

        The n-th annotation belongs to marker [n].
        """
        first = {cited["marker"]: cited for cited in reversed(answer["citations"])}
        annotations: list[Annotation] = []
        for _, cited in sorted(first.items()):
            document = cited["document"]
            # The annotation of a deleted document links to the front page. Without it, later annotations would move up.
            url = f"{self.site}{build_passage_url(document['id'], cited['start'], cited['end']) or '/'}"
            place: UrlCitation = {
                "start_index": cited["marker_start"],
                "end_index": cited["marker_end"],
                "title": document["title"],
                "url": url,
            }
            annotations.append({"type": "url_citation", "url_citation": place})
        return {"annotations": annotations, "citations": answer["citations"]}


def _choose_finish_reason(answer: CompletedEventPayload) -> Ending:
    return "length" if answer["cut_off"] else "stop"


def _estimate_tokens(texts: Iterable[str]) -> int:
    return sum(-(-len(text) // _CHARACTERS_PER_TOKEN) for text in texts)


def renumber_text(
    text: str, markers: Iterable[CitationMarker], numbers: dict[int, int]
) -> tuple[str, list[tuple[int, int]]]:
    """Return the text with its ``markers`` renumbered by first appearance, from 1, and the shifts of offsets.

    A shift is a pair: an old offset, and the difference from there on. ``numbers`` maps old to new numbers; new markers
    are added to it.
    """
    written, moved = text, [(0, 0)]
    for marker in markers:
        by, sign = moved[-1][1], f"[{numbers.setdefault(marker.number, len(numbers) + 1)}]"
        written = written[: marker.start + by] + sign + written[marker.end + by :]
        moved.append((marker.end, by + len(sign) - (marker.end - marker.start)))
    return written, moved


def renumber_citations(
    answer: CompletedEventPayload, sources: Sequence[SourcePayload], numbers: dict[int, int]
) -> tuple[CompletedEventPayload, list[SourcePayload]]:
    """Return the answer and its sources, numbered in the order in which the text cites them.

    ``numbers`` maps old to new numbers; earlier chunks of the stream have filled it, and this call extends it. The new
    numbers have no gaps, because clients show the n-th annotation for ``[n]``.
    """
    places = sorted({(cited["marker_start"], cited["marker_end"], cited["marker"]) for cited in answer["citations"]})
    # A stopped answer has markers but no citations.
    markers = [CitationMarker(marker, *span) for *span, marker in places] or find_markers(answer["answer"])
    text, moved = renumber_text(answer["answer"], markers, numbers)
    for source in sources:
        numbers.setdefault(source["marker"], len(numbers) + 1)

    def shift_position(at: int) -> int:
        return at + next(by for end, by in reversed(moved) if end <= at)

    def renumber(marker: int) -> int:
        return numbers.get(marker, marker)

    statements: list[StatementPayload] = [
        {
            **each,
            "start": shift_position(each["start"]),
            "end": shift_position(each["end"]),
            "markers": [renumber(marker) for marker in each["markers"]],
            "best": {**best, "marker": renumber(best["marker"])} if (best := each["best"]) else None,
        }
        for each in answer["statements"]
    ]
    citations: list[CitationPayload] = [
        {
            **cited,
            "marker": renumber(cited["marker"]),
            "marker_start": shift_position(cited["marker_start"]),
            "marker_end": shift_position(cited["marker_end"]),
            "marked_start": None if cited["marked_start"] is None else shift_position(cited["marked_start"]),
            "marked_end": None if cited["marked_end"] is None else shift_position(cited["marked_end"]),
        }
        for cited in answer["citations"]
    ]
    ordered: list[SourcePayload] = [{**source, "marker": renumber(source["marker"])} for source in sources]
    ordered.sort(key=itemgetter("marker"))
    return {**answer, "answer": text, "citations": citations, "statements": statements}, ordered
