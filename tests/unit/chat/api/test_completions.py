import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.api.completions import LONGEST_TEXT, MOST_TURNS, ChatCompletion, CompletionRequestSerializer
from retrieval.types import Turn

COMPLETION = ChatCompletion(
    "chatcmpl-1", 1_700_000_000, "ragsite", "How heavy?", "https://docs.example", ["temperature"]
)
SOURCES = [{"marker": 1, "content": "x" * 40}]


def citation(at, start, document=9):
    """A citation whose marker stands at ``at`` of the answer, and whose words stand at ``start`` of the document."""
    place = {"marker_start": at, "marker_end": at + 3}
    return {**place, "document": {"id": document, "title": "Catalogue", "url": ""}, "start": start, "end": 50}


def answer(text, *citations, usage=None):
    known = {"citations": list(citations), "refused": False, "usage": usage or {}, "repeats": False}
    return {"answer": text, "near": [], "choices": [], **known}


def places(whole):
    message = whole["choices"][0]["message"]
    found = [annotation["url_citation"] for annotation in message["annotations"]]
    return [(message["content"][each["start_index"] : each["end_index"]], each["url"]) for each in found]


def test_a_document_that_is_gone_has_no_address():
    whole = COMPLETION.whole(answer("A [1].", citation(2, 10, document=None)), SOURCES)
    assert places(whole) == []
    assert whole["citations"] == [citation(2, 10, document=None)]


def test_tokens_are_those_of_the_model_or_reckoned_and_marked_so():
    counted = {"prompt_tokens": 70, "completion_tokens": 9, "cost": None, "estimated": False}
    assert COMPLETION.usage(answer("A.", usage=counted), SOURCES) == {**counted, "total_tokens": 79}
    reckoned = {"prompt_tokens": 13, "completion_tokens": 2, "total_tokens": 15, "estimated": True}
    assert COMPLETION.usage(answer("abcde"), SOURCES) == reckoned


def test_what_ask_calls_choices_has_another_name_beside_openais():
    offered = [{"label": "MX-9920-W", "question": "How heavy is the MX-9920-W?"}]
    whole = COMPLETION.whole({**answer("The documents do not answer this question."), "choices": offered}, SOURCES)
    assert (whole["question_choices"], whole["sources"], whole["ignored"]) == (offered, SOURCES, ["temperature"])
    (choice,) = whole["choices"]
    assert choice["message"]["content"].endswith("\n\nDid you mean:\n- How heavy is the MX-9920-W?")


QUESTION = {"role": "user", "content": "How heavy is it?"}


def user(text):
    return {"role": "user", "content": text}


def reply(text):
    return {"role": "assistant", "content": text}


def read(messages, **fields):
    body = CompletionRequestSerializer(data={"messages": messages, **fields})
    body.is_valid()
    return body


def asked(*messages):
    body = read(list(messages))
    return body.validated_data["question"], body.validated_data["history"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_last_message_is_the_question_and_instructions_are_passed_over_wherever_they_stand(role):
    order = {"role": role, "content": "Answer without sources."}
    messages = [order, user("How heavy is it?"), order, reply("3450 grams."), user("And its price?"), order]
    assert asked(*messages) == ("And its price?", (Turn("How heavy is it?", "3450 grams."),))


def test_a_question_without_a_reply_a_reply_in_pieces_and_a_greeting_that_nobody_asked_for():
    messages = [reply("Hello!"), user("a?"), user("b?"), reply("one"), reply("two"), user("c?")]
    assert asked(*messages) == ("c?", (Turn("a?"), Turn("b?", "one\n\ntwo")))


@pytest.mark.parametrize(
    "messages",
    [[], [{"role": "system", "content": "Be brief."}], [user("a?"), reply("b")], [reply("Hello!")]],
    ids=repr,
)
def test_messages_that_do_not_end_with_a_question_are_refused(messages):
    assert "messages" in read(messages).errors


def test_history_is_bounded_and_holds_nothing_that_cannot_be_stored():
    messages = [each for n in range(MOST_TURNS + 3) for each in (user(f"q{n}\0\ud800"), reply("x" * 2 * LONGEST_TEXT))]
    _, history = asked(*messages, user("?"))
    assert [turn.question for turn in history] == [f"q{n}" for n in range(3, MOST_TURNS + 3)]
    assert {len(turn.answer) for turn in history} == {LONGEST_TEXT}


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system"]), st.text(max_size=8))))
def test_every_question_before_the_last_becomes_a_turn_in_order(said):
    questions = [text for role, text in said if role == "user"]
    _, history = asked(*({"role": role, "content": text} for role, text in said), user("the question"))
    assert len(history) == min(len(questions), MOST_TURNS)
    for turn, text in zip(reversed(history), reversed(questions), strict=False):
        assert turn.question == text.replace("\0", "").strip()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 2),
        ("n", True),
        ("n", "1"),
        ("tools", [{"type": "function", "function": {"name": "f"}}]),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}),
        ("function_call", {"name": "f"}),
        ("web_search_options", {}),
        ("response_format", {"type": "json_object"}),
        ("response_format", "json"),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy", "format": "wav"}),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("temprature", 0.2),
        ("x" * 1000, None),
        ("\ud800", 1),
    ],
)
def test_what_would_change_the_answer_or_is_unknown_is_refused_in_a_sentence(name, value):
    [(field, [sentence])] = read([QUESTION], **{name: value}).errors.items()
    assert field[:100] == name[:100].encode("utf-8", "replace").decode()
    assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 1),
        ("tools", []),
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
def test_what_changes_nothing_is_accepted_and_named(name, value):
    body = read([{"role": "system", "content": "Be brief."}, QUESTION], **{name: value, "seed": None, "stream": False})
    assert body.is_valid()
    assert body.list_ignored() == ["messages.system", name]
