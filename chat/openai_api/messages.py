"""OpenAI's list of messages as a question and the turns before it. Pure Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from retrieval.types import Turn

INSTRUCTING_ROLES = frozenset({"system", "developer"})
# Longer texts are cut: only their gist counts, and each question is saved with what came before it.
LONGEST_TEXT = 4000
MOST_TURNS = 10


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question and the turns before it, oldest first, as the caller tells them."""

    question: str
    history: tuple[Turn, ...] = ()


class NoQuestion(Exception):
    """The messages do not end with a question. The message is for the caller."""


def parse_messages(messages: Sequence[Message]) -> AskedQuestion:
    """What the last message asks, and what was said before.

    Instructions of the caller (the roles in INSTRUCTING_ROLES) are passed over: the site's own decide how it answers. A
    question without a reply becomes a turn without an answer; a reply that nobody asked for, such as a greeting, none.

    Raises: NoQuestion.
    """
    spoken = [message for message in messages if message.role not in INSTRUCTING_ROLES]
    if not spoken:
        raise NoQuestion("There is no message of the role user: the last one is the question.")
    if spoken[-1].role != "user":
        raise NoQuestion("The last message must be the user's question: a reply cannot be gone on with.")
    return AskedQuestion(spoken[-1].text, tuple(_turns(spoken[:-1])[-MOST_TURNS:]))


def _turns(messages: Iterable[Message]) -> list[Turn]:
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        if message.role == "user":
            turns.append((message.text, []))
        elif turns:
            turns[-1][1].append(message.text)
    return [Turn(_stored(question), _stored("\n\n".join(replies))) for question, replies in turns]


def _stored(text: str) -> str:
    """The text, without what the database cannot hold."""
    printable = "".join(character for character in text if character != "\0" and not "\ud800" <= character <= "\udfff")
    return printable.strip()[:LONGEST_TEXT]
