from __future__ import annotations

from typing import Any

from chat.openai_api.completions import ChatCompletion

COMPLETION = ChatCompletion(
    "chatcmpl-1", 1_700_000_000, "ragsite", "How heavy?", "https://docs.example", ["temperature"]
)
SOURCES = [{"marker": 1, "content": "x" * 40}]


def citation(at: int, start: int, document: int | None = 9) -> dict[str, Any]:
    """A citation whose marker stands at ``at`` of the answer, and whose words stand at ``start`` of the document."""
    place = {"marker_start": at, "marker_end": at + 3}
    return {**place, "document": {"id": document, "title": "Catalogue", "url": ""}, "start": start, "end": 50}


def answer(text: str, *citations: dict[str, Any], usage: dict[str, Any] | None = None) -> dict[str, Any]:
    known = {"citations": list(citations), "refused": False, "usage": usage or {}, "repeats": None}
    return {"text": text, "near": [], "choices": [], **known}


def places(whole: dict[str, Any]) -> list[tuple[str, str]]:
    message = whole["choices"][0]["message"]
    found = [annotation["url_citation"] for annotation in message["annotations"]]
    return [(message["content"][each["start_index"] : each["end_index"]], each["url"]) for each in found]


def test_each_marker_leads_to_the_words_it_stands_for() -> None:
    text = "A [1]. B [2]. C [1]."
    whole = COMPLETION.whole(answer(text, citation(2, 10), citation(9, 20), citation(16, 30)), SOURCES)
    base = "https://docs.example/documents/9/"
    assert places(whole) == [
        ("[1]", f"{base}?start=10&end=50#passage"),
        ("[2]", f"{base}?start=20&end=50#passage"),
        ("[1]", f"{base}?start=30&end=50#passage"),
    ]


def test_a_repeated_marker_takes_nothing_from_the_next() -> None:
    text = "Pump 3 bar [1][1]. Valve 5 bar [1]."
    whole = COMPLETION.whole(answer(text, citation(11, 10), citation(14, 10), citation(31, 30)), SOURCES)
    assert [url.partition("?")[2].partition("&")[0] for _, url in places(whole)] == ["start=10", "start=10", "start=30"]
    assert {marker for marker, _ in places(whole)} == {"[1]"}


def test_brackets_in_code_lead_nowhere() -> None:
    whole = COMPLETION.whole(answer("Take `row[1]` [1].", citation(14, 10)), SOURCES)
    (annotation,) = whole["choices"][0]["message"]["annotations"]
    assert annotation["url_citation"]["start_index"] == 14


def test_a_document_that_is_gone_has_no_address() -> None:
    whole = COMPLETION.whole(answer("A [1].", citation(2, 10, document=None)), SOURCES)
    assert places(whole) == []
    assert whole["citations"] == [citation(2, 10, document=None)]


def test_tokens_are_those_of_the_model() -> None:
    counted = {"prompt_tokens": 70, "completion_tokens": 9, "cost": None, "estimated": False}
    assert COMPLETION.usage(answer("A.", usage=counted), SOURCES) == {**counted, "total_tokens": 79}


def test_tokens_are_reckoned_and_marked_so_where_no_model_was_asked() -> None:
    assert COMPLETION.usage(answer("abcde"), SOURCES) == {
        "prompt_tokens": 13,
        "completion_tokens": 2,
        "total_tokens": 15,
        "estimated": True,
    }


def test_what_ask_returns_stands_beside_what_openai_returns() -> None:
    whole = COMPLETION.whole(answer("A."), SOURCES)
    assert whole["refused"] is False
    assert whole["sources"] == SOURCES
    assert whole["ignored"] == ["temperature"]
    assert whole["usage"]["total_tokens"] == 14
    assert "text" not in whole


def test_what_ask_calls_choices_has_another_name_beside_openais() -> None:
    offered = [{"label": "MX-9920-W", "question": "How heavy is the MX-9920-W?"}]
    whole = COMPLETION.whole({**answer("The documents do not answer this question."), "choices": offered}, SOURCES)
    assert whole["question_choices"] == offered
    (choice,) = whole["choices"]
    assert choice["message"]["content"].endswith("\n\nDid you mean:\n- How heavy is the MX-9920-W?")
