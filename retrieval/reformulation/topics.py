"""What a conversation is about: its last complete question, and the parts of it that a follow-up refers to. PURE."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from retrieval.reformulation.subjects import subject_of
from retrieval.reformulation.words import LEXICONS, language_of


@dataclass(frozen=True, slots=True)
class Topic:
    """The last complete question and its subject, which is not empty.

    ``others`` are the two things spoken of last, when a question was asked of one after the other. ``answer`` is the
    last answer, empty when there was none.
    """

    question: str
    subject: str
    others: tuple[str, str] | None = None
    answer: str = ""

    @property
    def situation(self) -> str:
        """The clause that says in which case ("if I cancel early"); empty without one."""
        return situation_of(self.question)

    @property
    def is_situation(self) -> bool:
        """Whether nothing but that clause says what the question is about ("What do I pay *if I cancel early*?")."""
        return bool(self.situation) and not subject_of(self._main, LEXICONS[language_of(self.question) or "en"])

    @property
    def action(self) -> str:
        """What somebody does in the question ("renew my parking permit"); empty when nobody does anything."""
        bare = self.question.rstrip(" ?.!")
        if match := _ACTION.search(bare):
            return match["action"]
        if match := _DUTCH_ACTION.match(bare):
            return f"{match['who'].lower()} {match['verb'].lower()} {match['rest']}"
        return ""

    @property
    def _main(self) -> str:
        return self.question.replace(self.situation, "", 1)


_WHO = (
    "i|we|you|they|he|she|it|people|someone|somebody|the|a|an|my|our|your|their|his|her"
    "|ik|je|jij|u|wij|men|hij|zij|ze|iemand|de|het|een|mijn|onze|uw|jouw"
)
_SITUATION = re.compile(
    r"(?<=\s)(?:if|when|while|unless|once|after|before|in case|als|wanneer|indien|nadat|voordat|zodra|terwijl)"
    rf"\s+(?:{_WHO})\s[^?.!]+",
    re.I,
)
_ACTION = re.compile(
    r"\b(?:do|does|did|can|could|may|must|should|will|would|shall)\s+(?:i|we|you|one|people)\s+"
    r"(?:have to |need to |want to )?(?P<action>\w+\s.*)",
    re.I,
)
_DUTCH_ACTION = re.compile(
    r"(?:(?:hoe|waar|wanneer|waarom|waarmee|hoe vaak|hoe lang|hoe snel)\s+)?"
    r"(?P<verb>\w+)\s+(?P<who>ik|we|wij|je|u|men)\s+(?P<rest>\w.*)",
    re.I,
)


def topic_of(question: str) -> Topic | None:
    """What a complete question makes the conversation be about; None when it names nothing."""
    lexicon = LEXICONS[language_of(question) or "en"]
    situation = situation_of(question)
    subject = subject_of(question.replace(situation, "", 1), lexicon) or subject_of(question, lexicon)
    # A quotation demands its words of every passage; carried over, that would be more than was asked.
    subject = re.sub(r'["“”«»]', "", subject).strip()
    return Topic(question, subject) if subject else None


def situation_of(question: str) -> str:
    """The clause at the question's end that says in which case; empty without one."""
    match = _SITUATION.search(question)
    return match[0].strip() if match else ""


def topic_after(topic: Topic | None, question: str) -> Topic | None:
    """What the conversation is about when a complete question follows: that, or still the same when it names nothing.

    After "how heavy is A?" and "how heavy is B?" the two can be compared.
    """
    following = topic_of(question)
    if topic is None or following is None:
        return following or topic
    is_same_question = topic.question.replace(topic.subject, "") == question.replace(following.subject, "")
    if is_same_question and topic.subject != following.subject:
        return replace(following, others=(topic.subject, following.subject))
    return following
