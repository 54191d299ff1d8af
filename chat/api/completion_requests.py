"""Parse requests for OpenAI's chat completions. Parameters that this site cannot follow are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from core.api.fields import FlagField, KnownFieldsOnly, NameField, TextField
from retrieval.api.serializers import METHODS
from retrieval.types import Turn

# A message has at most this many characters, because the history is stored with every question.
LONGEST_TEXT = 4000


MOST_TURNS = 10


_INSTRUCTING_ROLES = ("system", "developer")


_NO_TOOLS = "This site answers from its documents and calls no tools: leave this out, or set it to auto or none."


_TEXT_QUESTION = "The question must be text: pictures, sound and files are not understood."


# The last two names are from OpenAI's Responses API.
_TEXT_PARTS = ("text", "input_text", "output_text")


_TEXT_ONLY = "This site answers in text only: leave this out."


_NO_PROBABILITIES = "Probabilities of tokens are not offered: leave this out."


# Maps a parameter to the accepted values, and to the error message for all others.
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
        *("add_special_tokens", "bad_words", "cache_salt", "caching", "chat_id", "do_sample", "drop_params"),
        *("early_stopping", "enable_search", "fallbacks", "id_slot", "min_length", "models", "n_keep", "num_gpu"),
        *("num_thread", "priority", "reasoning_format", "reasoning_split", "request_id", "return_progress", "route"),
        *("samplers", "session_id", "suppress_tokens", "tags", "tfs_z", "thinking_budget", "timeout"),
        *("timings_per_token", "top_n_sigma", "transforms", "truncate_prompt_tokens", "ttl", "usage"),
    ]
)


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]})
class ContentField(serializers.Field[list[str | None], Any, Any, Any]):
    """A field for the content of a message: a text or a list of parts. Parts that are not text become None."""

    def to_internal_value(self, data: Any) -> list[str | None]:
        parts = [{"type": "text", "text": data}] if isinstance(data, str) else data
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise ValidationError("This must be a string, or a list of parts of the type text.")
        texts = [part.get("text") if part.get("type") in _TEXT_PARTS else None for part in parts]
        if any(not isinstance(text, str | None) for text in texts):
            raise ValidationError("The text of a part must be a string.")
        return texts


class MessageSerializer(KnownFieldsOnly):
    """A message of a request. Its ``content`` becomes None if it is not only text."""

    # Clients copy these fields from an earlier reply into the history.
    ignored_fields = frozenset(
        [
            *("annotations", "audio", "citations", "function_call", "name", "reasoning", "reasoning_content"),
            *("reasoning_details", "refusal", "thinking", "tool_call_id", "tool_calls"),
            *("cache_control", "created", "created_at", "done", "extra_content", "id", "metadata", "model", "parsed"),
            *("partial", "prefix", "provider_specific_fields", "sources", "thinking_blocks", "timestamp"),
        ]
    )
    ignores_empty = True
    role = NameField(choices=(*_INSTRUCTING_ROLES, "user", "assistant", "tool", "function"))
    content = ContentField(
        required=False, allow_null=True, help_text="The last message is the question; those before complete it."
    )

    def to_internal_value(self, data: Any) -> Any:
        message = super().to_internal_value(data)
        parts = message.get("content") or []
        # A question with a picture is refused, because its text alone may be incomplete. Other parts of an earlier
        # reply are ignored.
        is_text = bool(parts) and None not in parts if message["role"] == "user" else any(parts)
        is_call = bool(data.get("tool_calls") or data.get("function_call"))
        return {**message, "content": "\n".join(filter(None, parts)) if is_text and not is_call else None}


class StreamOptionsSerializer(KnownFieldsOnly):
    ignored_fields = frozenset({"continuous_usage_stats", "include_obfuscation"})
    include_usage = FlagField(required=False, default=False)


class CompletionRequestSerializer(KnownFieldsOnly):
    """A request for a completion. Validation adds ``question`` and ``history``."""

    ignored_fields = _IGNORED | set(_REFUSED)
    ignores_empty = True
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
                # The types are compared too, because True equals 1 in Python.
                if (value := data.get(name)) is not None
                and not any(value == one and type(value) is type(one) for one in harmless)
            }
            if refused:
                raise ValidationError(refused, code="unsupported")
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Split the messages into ``question``, the last message, and ``history``."""
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

    def list_ignored_fields(self) -> list[str]:
        sent = sorted(name for name in self.ignored_fields if self.initial_data.get(name) is not None)
        instructed = any(message["role"] in _INSTRUCTING_ROLES for message in self.validated_data["messages"])
        return [*(["messages.system"] if instructed else []), *sent]


def _clean_text(text: str) -> str:
    printable = "".join(character for character in text if character != "\0" and not "\ud800" <= character <= "\udfff")
    return printable.strip()[:LONGEST_TEXT]
