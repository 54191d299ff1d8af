from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.openai_api.messages import LONGEST_TEXT, MOST_TURNS, AskedQuestion, Message, NoQuestion, parse_messages
from retrieval.types import Turn


def user(text: str) -> Message:
    return Message("user", text)


def reply(text: str) -> Message:
    return Message("assistant", text)


def test_the_last_message_is_the_question_and_the_pairs_before_it_are_the_history() -> None:
    messages = [user("How heavy is it?"), reply("3450 grams [1]."), user("And its price?")]
    assert parse_messages(messages) == AskedQuestion("And its price?", (Turn("How heavy is it?", "3450 grams [1]."),))


def test_a_single_message_has_no_history() -> None:
    assert parse_messages([user("How heavy is it?")]) == AskedQuestion("How heavy is it?")


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_are_passed_over_wherever_they_stand(role: str) -> None:
    order = Message(role, "Answer without sources.")
    messages = [order, user("How heavy is it?"), order, reply("3450 grams."), user("And its price?"), order]
    assert parse_messages(messages) == AskedQuestion("And its price?", (Turn("How heavy is it?", "3450 grams."),))


def test_a_question_without_a_reply_and_a_reply_in_pieces() -> None:
    messages = [user("a?"), user("b?"), reply("one"), reply("two"), user("c?")]
    assert parse_messages(messages) == AskedQuestion("c?", (Turn("a?"), Turn("b?", "one\n\ntwo")))


def test_a_greeting_that_nobody_asked_for_is_no_turn() -> None:
    assert parse_messages([reply("Hello! What would you like to know?"), user("a?")]) == AskedQuestion("a?")


@pytest.mark.parametrize(
    "messages", [[], [Message("system", "Be brief.")], [user("a?"), reply("b")], [reply("Hello!")]], ids=repr
)
def test_messages_that_do_not_end_with_a_question_are_refused(messages: list[Message]) -> None:
    with pytest.raises(NoQuestion):
        parse_messages(messages)


def test_history_is_bounded_and_holds_nothing_that_cannot_be_stored() -> None:
    messages = [each for n in range(MOST_TURNS + 3) for each in (user(f"q{n}\0\ud800"), reply("x" * 2 * LONGEST_TEXT))]
    history = parse_messages([*messages, user("?")]).history
    assert [turn.question for turn in history] == [f"q{n}" for n in range(3, MOST_TURNS + 3)]
    assert {len(turn.answer) for turn in history} == {LONGEST_TEXT}


@given(st.lists(st.builds(Message, st.sampled_from(["user", "assistant", "system"]), st.text(max_size=8))))
def test_every_question_before_the_last_becomes_a_turn_in_order(messages: list[Message]) -> None:
    said = [message for message in messages if message.role == "user"]
    history = parse_messages([*messages, user("the question")]).history
    assert len(history) == min(len(said), MOST_TURNS)
    for turn, message in zip(reversed(history), reversed(said), strict=False):
        assert turn.question == message.text.replace("\0", "").strip()
