"""Serves OpenAI's chat completions from the site's own answers.

Parameters that would change an answer's meaning are refused; parameters that only tune a model are ignored.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from chat.answering.checking.citations import MARKER, Marker, find_markers
from chat.answering.writers import choosable_models
from chat.api.endpoints import begin_answer, finish_answer, give_back_connection
from chat.api.openai import ALL, ModelNotFound, OpenAIView, embedding_model, error, models_for
from chat.api.serializers import AnswerSerializer, QuestionChoiceSerializer
from chat.models import Answer, Conversation
from chat.pages.answer_text import whole_text
from chat.streaming import payloads, readers, sse
from core.api.fields import FlagField, KnownFieldsOnly, NameField, TextField
from core.api.schema import EVENT
from core.user_types import AnyUser
from retrieval.api.serializers import METHODS
from retrieval.passage_address import passage_url
from retrieval.types import Turn

Payload = Mapping[str, Any]

DONE = b"data: [DONE]\n\n"
# The protocol cannot withdraw text; this line ends withdrawn text.
WITHDRAWN = "\n\n---\n\n"
# In characters; each question is stored with its earlier messages.
LONGEST_TEXT = 4000
MOST_TURNS = 10
_CHARACTERS_PER_TOKEN = 4
_OFFSETS = ("marker_start", "marker_end", "marked_start", "marked_end")
_INSTRUCTING_ROLES = ("system", "developer")


_NO_TOOLS = "This site answers from its documents and calls no tools: leave this out, or set it to auto or none."
_TEXT_QUESTION = "The question must be text: pictures, sound and files are not understood."
_TEXT_ONLY = "This site answers in text only: leave this out."
_NO_PROBABILITIES = "Probabilities of tokens are not offered: leave this out."

# Accepted values, and the error message for others.
_REFUSED: Mapping[str, tuple[Sequence[Any], str]] = {
    "n": ((1,), "This site writes one answer to a question: leave n out, or set it to 1."),
    "tool_choice": (("none", "auto"), _NO_TOOLS),
    "function_call": (("none", "auto"), _NO_TOOLS),
    "web_search_options": ((), "This site searches its own documents, never the web: leave this out."),
    "response_format": (
        ({"type": "text"},),
        "Answers are text with citations, and cannot be given another form: leave this out.",
    ),
    "modalities": ((["text"],), _TEXT_ONLY),
    "audio": ((), _TEXT_ONLY),
    "logprobs": ((False,), _NO_PROBABILITIES),
    "top_logprobs": ((0,), _NO_PROBABILITIES),
}
_IGNORED = frozenset(
    [
        *("frequency_penalty", "functions", "logit_bias", "max_completion_tokens", "max_tokens", "metadata"),
        *("parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key"),
        *("prompt_cache_retention", "reasoning_effort", "safety_identifier", "seed", "service_tier", "stop"),
        *("store", "temperature", "tools", "top_p", "user", "verbosity"),
        *("add_generation_prompt", "cache_prompt", "chat_template_kwargs", "dry_multiplier", "enable_thinking"),
        *("ignore_eos", "include_reasoning", "keep_alive", "length_penalty", "min_p", "min_tokens", "mirostat"),
        *("mirostat_eta", "mirostat_tau", "n_predict", "num_ctx", "num_predict", "options", "provider"),
        *("random_seed", "reasoning", "repeat_last_n", "repeat_penalty", "repetition_penalty", "safe_prompt"),
        *("skip_special_tokens", "stop_token_ids", "think", "thinking", "top_a", "top_k", "typical_p"),
        *("xtc_probability", "xtc_threshold"),
    ]
)


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]})
class ContentField(serializers.Field[list[str | None], Any, Any, Any]):
    """A text or a list of parts; parts of another type become None."""

    def to_internal_value(self, data: Any) -> list[str | None]:
        parts = [{"type": "text", "text": data}] if isinstance(data, str) else data
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise ValidationError("This must be a string, or a list of parts of the type text.")
        texts = [part.get("text") if part.get("type") == "text" else None for part in parts]
        if any(not isinstance(text, str | None) for text in texts):
            raise ValidationError("The text of a part must be a string.")
        return texts


class MessageSerializer(KnownFieldsOnly):
    """A message; ``content`` becomes None if it is not text only."""

    # Clients send these fields back with an answer.
    ignored_fields = frozenset(
        [
            *("annotations", "audio", "citations", "function_call", "name", "reasoning", "reasoning_content"),
            *("reasoning_details", "refusal", "thinking", "tool_call_id", "tool_calls"),
        ]
    )
    role = NameField(choices=(*_INSTRUCTING_ROLES, "user", "assistant", "tool", "function"))
    content = ContentField(
        required=False, allow_null=True, help_text="The last message is the question; those before complete it."
    )

    def to_internal_value(self, data: Any) -> Any:
        message = super().to_internal_value(data)
        parts = message.get("content") or []
        # A question needs its picture, but a reply does not need its thoughts.
        is_text = bool(parts) and None not in parts if message["role"] == "user" else any(parts)
        is_call = bool(data.get("tool_calls") or data.get("function_call"))
        return {**message, "content": "\n".join(filter(None, parts)) if is_text and not is_call else None}


class StreamOptionsSerializer(KnownFieldsOnly):
    ignored_fields = frozenset({"include_obfuscation"})
    include_usage = FlagField(required=False, default=False)


class CompletionRequestSerializer(KnownFieldsOnly):
    """A request, to which validation adds ``question`` and ``history``."""

    ignored_fields = _IGNORED | set(_REFUSED)
    model = TextField(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=200,
        help_text="`ragsite`, or empty: all documents; `ragsite/<collection>`: one collection. "
        "`@<language model>` behind it: who writes.",
    )
    messages = MessageSerializer(many=True, allow_empty=False)
    stream = FlagField(required=False, allow_null=True)
    stream_options = StreamOptionsSerializer(required=False, allow_null=True)
    method = NameField(choices=METHODS, required=False, allow_null=True, help_text="Not of OpenAI's: how to search.")
    anew = FlagField(
        required=False, allow_null=True, help_text="Not of OpenAI's: answer again, even if answered before."
    )
    list_sources = FlagField(
        required=False, allow_null=True, help_text="Not of OpenAI's: end the text with a list of its sources."
    )

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            refused = {
                name: [why]
                for name, (harmless, why) in _REFUSED.items()
                # True equals 1.
                if (value := data.get(name)) is not None
                and not any(value == one and type(value) is type(one) for one in harmless)
            }
            if refused:
                raise ValidationError(refused, code="unsupported")
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Split the messages into ``question`` and ``history``.

        The caller's instructions, replies before the first question, earlier questions with pictures, and calls of
        tools are left out.
        """
        spoken = [message for message in attrs["messages"] if message["role"] not in _INSTRUCTING_ROLES]
        if not spoken:
            raise ValidationError({"messages": ["There is no message of the role user: the last one is the question."]})
        if spoken[-1]["role"] != "user":
            raise ValidationError({"messages": ["The last message must be the user's question, not a reply."]})
        if spoken[-1]["content"] is None:
            position = attrs["messages"].index(spoken[-1])
            raise ValidationError({"messages": {position: {"content": [_TEXT_QUESTION]}}})
        turns: list[tuple[str | None, list[str]]] = []
        for message in spoken[:-1]:
            if message["role"] == "user":
                turns.append((message["content"], []))
            elif turns and message["role"] == "assistant" and message["content"] is not None:
                turns[-1][1].append(message["content"])
        history = [
            Turn(_clean_text(question), _clean_text("\n\n".join(replies)))
            for question, replies in turns
            if question is not None
        ]
        return {**attrs, "question": spoken[-1]["content"], "history": tuple(history[-MOST_TURNS:])}

    def list_ignored(self) -> list[str]:
        sent = sorted(name for name in self.ignored_fields if self.initial_data.get(name) is not None)
        instructed = any(message["role"] in _INSTRUCTING_ROLES for message in self.validated_data["messages"])
        return [*(["messages.system"] if instructed else []), *sent]


def _clean_text(text: str) -> str:
    printable = "".join(character for character in text if character != "\0" and not "\ud800" <= character <= "\udfff")
    return printable.strip()[:LONGEST_TEXT]


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


async def chunks(
    answer_id: uuid.UUID, user: AnyUser, completion: ChatCompletion, *, include_usage: bool
) -> AsyncIterator[bytes]:
    """Yield chunks of the completion; the last has all fields of the answer, or an error.

    If the model failed half-way or the process died, the whole answer follows behind a ruled line, and the last chunk
    contains it as ``answer``.
    """
    await give_back_connection()
    # OpenAI sends an empty `usage` before the end.
    beside: dict[str, Any] = {"usage": None} if include_usage else {}
    yield _encode_chunk(completion.chunk({"role": "assistant", "content": ""}, **beside))
    sources: list[dict[str, Any]] = []
    numbers: dict[int, int] = {}
    streamed = written = ""
    async with aclosing(readers.follow(answer_id, user, may_return=False)) as events:
        async for event in events:
            match event.name:
                case "searched":
                    sources = event.payload["sources"]
                    found = {name: value for name, value in event.payload.items() if name != "sources"}
                    found["passages"] = [{**source, "marker": None} for source in sources]
                    yield _encode_chunk(completion.chunk({}, **beside, **found))
                case "token":
                    before, written = len(written), written + event.payload["text"]
                    placed = [Marker(*each.values()) for each in event.payload.get("markers") or ()]
                    if "markers" not in event.payload:
                        placed = [each.moved(-before) for each in find_markers(written) if each.start >= before]
                    text, _ = number(event.payload["text"], placed, numbers)
                    streamed += text
                    yield _encode_chunk(completion.chunk({"content": text}, **beside))
                case "reset":
                    if streamed.strip():
                        yield _encode_chunk(completion.chunk({"content": WITHDRAWN}, **beside))
                    streamed = written = ""
                    numbers.clear()
                case "completed":
                    if not event.payload["answer"].startswith(written.strip()):
                        numbers.clear()
                    answer, sources = number_in_order(event.payload, sources, numbers)
                    if rest := _find_unsaid(completion.content(answer), streamed):
                        yield _encode_chunk(completion.chunk({"content": rest}, **beside))
                    answered = completion.beside(answer, sources)
                    yield _encode_chunk(
                        completion.chunk(completion.cite(answer), _name_ending(answer), **answered, **beside)
                    )
                    if include_usage:
                        yield _encode_chunk(
                            {**completion.chunk({}), "choices": [], "usage": completion.usage(answer, sources)}
                        )
                case "failed":
                    yield _encode_chunk(error(event.payload["message"], kind="server_error"))
                case _:
                    yield sse.comment(event.name)
    yield DONE


def _find_unsaid(text: str, streamed: str) -> str:
    if text.startswith(streamed.lstrip()):
        return text[len(streamed.lstrip()) :]
    return text[len(streamed.strip()) :] if text.startswith(streamed.strip()) else WITHDRAWN + text


def _remove_all_markers(text: str) -> str:
    return " ".join(MARKER.sub("", text).split())


def _encode_chunk(chunk: Payload) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()


class CompletionsView(OpenAIView):
    throttle_scope = "ask"

    @extend_schema(
        operation_id="chat_completions_create",
        request=CompletionRequestSerializer,
        responses={
            (200, "application/json"): CompletionSerializer,
            (200, "text/event-stream"): OpenApiResponse(
                EVENT, "With `stream`: `chat.completion.chunk` objects, then `[DONE]`."
            ),
        },
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Answer the last message with citations; earlier messages complete it."""
        body = CompletionRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        model, listed = fields.get("model") or ALL, fields.get("list_sources")
        if model == embedding_model()["id"]:
            raise ModelNotFound(model, "The model {!r} makes vectors: ask `ragsite`.")
        if model not in {known["id"] for known in models_for(request.user)}:
            raise ModelNotFound(model)
        named, _, writer = model.partition("@")
        collection = named.removeprefix(ALL).removeprefix("/")
        try:
            # The protocol has no conversation ids.
            answer = begin_answer(
                request,
                fields["question"],
                conversation_id=_find_conversation(request.user, fields["history"], collection),
                collection=collection,
                method=fields.get("method") or "",
                # The request names no conversation, so no earlier choice of a model counts.
                model=writer or next(iter(choosable_models(request.user)), ""),
                anew=bool(fields.get("anew")),
                history=fields["history"],
            )
        except ValidationError as refused:
            # The question's field is `messages` in this protocol.
            named = {"messages" if name == "question" else name: why for name, why in refused.detail.items()}  # type: ignore[union-attr]  # by field
            raise ValidationError(named) from refused
        completion = ChatCompletion(
            id=f"chatcmpl-{answer.pk.hex}",
            created=int(answer.created_at.timestamp()),
            model=model,
            question=answer.question,
            site=request.build_absolute_uri("/").rstrip("/"),
            ignored=body.list_ignored(),
            lists_sources=getattr(request.auth, "lists_sources", False) if listed is None else listed,
        )
        if fields.get("stream"):
            include_usage = bool((fields.get("stream_options") or {}).get("include_usage"))
            return sse.respond(chunks(answer.pk, request.user, completion, include_usage=include_usage))
        answer = finish_answer(answer, request.user)
        return Response(completion.whole(payloads.completed(answer, answer.citations.all()), answer.sources))


def _find_conversation(user: AnyUser, history: Sequence[Turn], collection: str) -> uuid.UUID | None:
    """Return the user's conversation that ends with the messages' last reply, or None.

    Otherwise each follow-up would begin a new conversation. Callers without an account must not join strangers'
    conversations.
    """
    if not getattr(user, "is_authenticated", False) or not history:
        return None
    last = history[-1]
    scope = {"collection__slug": collection} if collection else {"collection": None}
    answers = Answer.objects.filter(
        conversation__in=Conversation.objects.of(user, "").filter(**scope), question=last.question
    ).exclude(text="")
    # The reply has other numbers, and perhaps more text.
    said = _remove_all_markers(last.answer)
    newest = answers.order_by("-created_at")[:MOST_TURNS]
    answer = next((each for each in newest if said.startswith(_remove_all_markers(_clean_text(each.text)))), None)
    if answer is None or answer.conversation.answers.filter(created_at__gt=answer.created_at).exists():
        return None
    return answer.conversation_id
