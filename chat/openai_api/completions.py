"""A finished answer as OpenAI's completion, and an answer being written as its chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chat.api.events import with_answer
from chat.pages.cards import passage_url
from chat.pages.plain_text import whole_text

# English text has about this many characters a token, whatever the tokenizer.
_CHARACTERS_PER_TOKEN = 4

Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatCompletion:
    """What stays the same in all that is sent of one completion.

    ``site`` is the site's address without a closing slash; ``ignored`` names what was sent and had no effect.
    """

    id: str
    created: int
    model: str
    question: str
    site: str
    ignored: Sequence[str] = ()

    def whole(self, answer: Payload, sources: Sequence[Payload]) -> dict[str, Any]:
        """The completion with the answer (in the form of chat.streaming.payloads.completed)."""
        message = {"role": "assistant", "content": whole_text(answer), "refusal": None, **self._cite(answer)}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {
            **self._envelope("chat.completion", [choice]),
            "usage": self.usage(answer, sources),
            **self._beside(answer, sources),
        }

    def chunk(self, delta: Mapping[str, Any], **beside: Any) -> dict[str, Any]:
        """A piece of the answer; ``beside`` are fields of the site's own."""
        return {**self._envelope("chat.completion.chunk", [_choice(delta)]), **beside}

    def last_chunk(self, answer: Payload, sources: Sequence[Payload]) -> dict[str, Any]:
        """The end, and all that is known of the answer then."""
        choice = _choice(self._cite(answer), finish_reason="stop")
        return {**self._envelope("chat.completion.chunk", [choice]), **self._beside(answer, sources)}

    def usage_chunk(self, answer: Payload, sources: Sequence[Payload]) -> dict[str, Any]:
        return {**self._envelope("chat.completion.chunk", []), "usage": self.usage(answer, sources)}

    def usage(self, answer: Payload, sources: Sequence[Payload]) -> dict[str, Any]:
        """What the model consumed; reckoned by the length of the texts, and marked so, when no model was asked."""
        counted = answer["usage"] or {
            "prompt_tokens": _tokens([self.question, *(source["content"] for source in sources)]),
            "completion_tokens": _tokens([whole_text(answer)]),
            "estimated": True,
        }
        return {**counted, "total_tokens": counted["prompt_tokens"] + counted["completion_tokens"]}

    def _envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}

    def _beside(self, answer: Payload, sources: Sequence[Payload]) -> dict[str, Any]:
        """Everything that `ask` returns, and the sources. Of what OpenAI's protocol has the names of, the usage is left
        out, and the choices are called otherwise.
        """
        known = {name: value for name, value in with_answer(answer).items() if name not in ("usage", "choices")}
        own = {"question_choices": answer["choices"], "sources": list(sources), "ignored": list(self.ignored)}
        return {**known, **own}

    def _cite(self, answer: Payload) -> dict[str, Any]:
        citations = answer["citations"]
        return {"annotations": _annotations(citations, self.site), "citations": citations}


def _choice(delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": dict(delta), "finish_reason": finish_reason, "logprobs": None}


def _annotations(citations: Iterable[Payload], site: str) -> list[dict[str, Any]]:
    """Citations as OpenAI's own models give those of web pages: the place of each marker in the text, with the address
    of the words it stands for. A citation whose document is gone has none and is left out.
    """
    annotations = []
    for citation in citations:
        document = citation["document"]
        if path := passage_url(document["id"], citation["start"], citation["end"]):
            place = {"start_index": citation["marker_start"], "end_index": citation["marker_end"]}
            cited = {**place, "title": document["title"], "url": f"{site}{path}"}
            annotations.append({"type": "url_citation", "url_citation": cited})
    return annotations


def _tokens(texts: Iterable[str]) -> int:
    return sum(-(-len(text) // _CHARACTERS_PER_TOKEN) for text in texts)
