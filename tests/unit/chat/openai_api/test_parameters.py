from __future__ import annotations

from typing import Any

import pytest

from chat.openai_api.parameters import list_ignored, refusals


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 2),
        ("n", True),
        ("n", "1"),
        ("tools", [{"type": "function", "function": {"name": "f"}}]),
        ("functions", [{"name": "f"}]),
        ("tool_choice", "required"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}),
        ("function_call", {"name": "f"}),
        ("web_search_options", {}),
        ("response_format", {"type": "json_object"}),
        ("response_format", {"type": "json_schema", "json_schema": {}}),
        ("response_format", "json"),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy", "format": "wav"}),
        ("logprobs", True),
        ("top_logprobs", 3),
    ],
)
def test_what_would_change_the_meaning_of_the_answer_is_refused_in_a_sentence(name: str, value: Any) -> None:
    found = refusals({"model": "ragsite", name: value})
    assert list(found) == [name]
    assert found[name].endswith(".")
    assert refusals({name: None}) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 1),
        ("tools", []),
        ("functions", []),
        ("tool_choice", "none"),
        ("tool_choice", "auto"),
        ("response_format", {"type": "text"}),
        ("modalities", ["text"]),
        ("logprobs", False),
        ("top_logprobs", 0),
        ("temperature", 0.2),
        ("max_completion_tokens", 100),
    ],
)
def test_what_changes_nothing_is_accepted(name: str, value: Any) -> None:
    assert refusals({name: value}) == {}


def test_what_has_no_effect_is_named() -> None:
    body = {"model": "m", "messages": [], "stream": False, "user": "u", "temperature": 0, "seed": None, "\ud800": 1}
    assert list_ignored(body, instructed=False) == ["temperature", "user"]
    assert list_ignored(body, instructed=True) == ["messages.system", "temperature", "user"]


def test_the_names_are_bounded() -> None:
    names = list_ignored({f"{n}" * 1000: n for n in range(1000)}, instructed=True)
    assert len(names) <= 20
    assert max(map(len, names)) <= 40
