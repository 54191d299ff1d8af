"""What is done with the parameters of OpenAI's protocol that a site of cited answers cannot follow. Pure Python.

A parameter that would change what the answer means is refused, so that nobody takes one thing for another; one that
merely tunes a model has no effect, and the response says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

UNDERSTOOD = frozenset({"model", "messages", "stream", "stream_options", "method", "anew"})
_MOST_NAMES = 20
_LONGEST_NAME = 40

_NO_TOOLS = "This site answers from its documents and calls no tools: leave this out."
_TEXT_ONLY = "This site answers in text only: leave this out."

# By parameter: what is refused, and the sentence that says why.
_REFUSED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "n": (
        lambda value: value is True or value != 1,
        "This site writes one answer to a question: leave n out, or set it to 1.",
    ),
    "tools": (lambda value: bool(value), _NO_TOOLS),
    "functions": (lambda value: bool(value), _NO_TOOLS),
    "tool_choice": (lambda value: value not in ("none", "auto"), _NO_TOOLS),
    "function_call": (lambda value: value not in ("none", "auto"), _NO_TOOLS),
    "web_search_options": (lambda value: True, "This site searches its own documents, never the web: leave this out."),
    "response_format": (
        lambda value: not isinstance(value, dict) or value.get("type") != "text",
        "Answers are text with citations, and cannot be given another form: leave this out.",
    ),
    "modalities": (lambda value: value != ["text"], _TEXT_ONLY),
    "audio": (lambda value: True, _TEXT_ONLY),
    "logprobs": (lambda value: value is not False, "Probabilities of tokens are not offered: leave this out."),
    "top_logprobs": (lambda value: value != 0, "Probabilities of tokens are not offered: leave this out."),
}


def refusals(body: Mapping[str, Any]) -> dict[str, str]:
    """By the name of each parameter that cannot be followed, why; null is as good as leaving it out."""
    return {
        name: why
        for name, (is_refused, why) in _REFUSED.items()
        if body.get(name) is not None and is_refused(body[name])
    }


def list_ignored(body: Mapping[str, Any], instructed: bool) -> list[str]:
    """The names of what was sent and made no difference, in order; ``instructed``: a system message was among it."""
    # A name that cannot be printed could not be sent back either.
    sent = (name for name in body if name not in UNDERSTOOD and body[name] is not None and name.isprintable())
    names = sorted(name[:_LONGEST_NAME] for name in sent)
    return [*(["messages.system"] if instructed else []), *names][:_MOST_NAMES]
