"""Follow-ups that are no sentence ("and in winter?", "and the stainless one?"), completed. PURE.

The question before is asked again, with the fragment in the place of the phrase of its own kind: a name for a name,
"a ..." for "a ...", what begins with a preposition for what begins with the same one. What is an attribute or a part
("and the price?") is asked of the subject instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from retrieval.reformulation.pronouns import in_brackets, owned
from retrieval.reformulation.subjects import Token, is_content, noun_phrases, tokens_of
from retrieval.reformulation.topics import Topic
from retrieval.reformulation.words import Lexicon, words

_LONGEST_WORDS = 6
_DEFINITE = words("the de het this that die dat")
_INDEFINITE = words("a an een another")
_CONDITIONS = words("if when while unless once after before als wanneer indien nadat voordat zodra because omdat")
_POINTING = words("that this then those dat die dit toen")
# "The cordless version": of the same thing.
_VARIANT = words(
    "version model variant edition type size colour color versie uitvoering model variant maat kleur soort"
)
_DUTCH_ADJECTIVE = re.compile(
    r"\w*stalen|houten|bronzen|koperen|ijzeren|zilveren|gouden|rvs|plastic|grote|kleine|nieuwe|oude|lange|korte|hoge|lage"
    r"|zware|lichte|goedkope|dure|snelle|langzame|elektrische|draadloze|tweedehands|dubbele|enkele|brede|smalle"
    r"|rode|blauwe|groene|gele|zwarte|witte|grijze|andere|tijdelijke|vaste|digitale",
    re.I,
)
_NO_VERB = "no verb: the question before, in this case"
_ANOTHER = "another thing: the same question of it"


@dataclass(frozen=True, slots=True)
class Fragment:
    """A question without the words it carries on with, which may be none. ``tokens`` are those behind them."""

    question: str
    tokens: tuple[Token, ...]
    has_and: bool
    has_about: bool

    @property
    def spoken(self) -> list[Token]:
        return [token for token in self.tokens if token.is_word]

    @property
    def carries_on(self) -> bool:
        return self.has_and or self.has_about

    @property
    def text(self) -> str:
        start = self.spoken[0].start
        while start and self.question[start - 1] in "-./+#":
            start -= 1
        return self.question[start : self.spoken[-1].end]

    def is_sentence(self, lexicon: Lexicon) -> bool:
        finite = lexicon.be | lexicon.auxiliaries | lexicon.question_words
        return any(
            token.lower in finite or (token.lower in lexicon.verbs and not is_content(self.tokens, index, lexicon))
            for index, token in enumerate(self.tokens)
            if token.is_word
        ) or any(token.lower in {"i", "we", "ik", "je", "wij"} for token in self.tokens)


Completed = tuple[str, str, Topic]
"""The question, the rule, and what the conversation is about from here on."""


def completed_fragment(fragment: Fragment, topic: Topic, lexicon: Lexicon) -> Completed | None:
    """The question that the fragment stands for; None when it is a sentence, or that cannot be told."""
    if (asked := _asks_more(fragment, topic, lexicon)) is not None:
        return asked
    spoken = fragment.spoken
    if fragment.carries_on and spoken[0].lower in _CONDITIONS and _is_clause(spoken, lexicon):
        bare = topic.question.replace(topic.situation, "", 1).rstrip(" ?.!,")
        question = f"{bare} {fragment.text}?"
        return question, "condition: the question before, in this case", replace(topic, question=question)
    if fragment.is_sentence(lexicon) or len(spoken) > _LONGEST_WORDS:
        return None
    if any(token.is_excluded for token in spoken) or not _is_about_something(fragment, lexicon):
        return None
    asks = fragment.question.rstrip().endswith("?")
    has_content = any(is_content(fragment.tokens, index, lexicon) for index in range(len(fragment.tokens)))
    if (spoken[0].lower in lexicon.prepositions and (fragment.carries_on or asks)) or (
        fragment.carries_on and not has_content
    ):
        return _in_this_case(fragment, topic, lexicon)
    if any(token.lower == lexicon.of for token in spoken[1:]):
        return None
    return _noun_phrase(fragment, topic, lexicon)


def _asks_more(fragment: Fragment, topic: Topic, lexicon: Lexicon) -> Completed | None:
    """ "And at what temperature?", "for how long?": a question word without a verb."""
    spoken = fragment.spoken
    asking = [token.lower in lexicon.question_words for token in spoken]
    place = asking.index(True) if True in asking else -1
    if (
        place not in (0, 1)
        or len(spoken) > _LONGEST_WORDS
        or (place == 1 and spoken[0].lower not in lexicon.prepositions)
    ):
        return None
    behind = spoken[place + 1 :]
    verbs = lexicon.be | lexicon.auxiliaries | lexicon.verbs | lexicon.pronouns | lexicon.determiners
    if (not behind and place == 0) or any(token.lower in verbs for token in behind):
        return None
    if not (fragment.carries_on or place == 1) or fragment.has_about:
        return None
    rule = "question word alone: the question before it"
    if place == 0 and (same := _same_question_word(topic.question, spoken, lexicon)):
        question = fragment.text + topic.question[same:]
        return question, _ANOTHER, replace(topic, question=question)
    return f"{fragment.question} {topic.question}", rule, topic


def _same_question_word(question: str, spoken: list[Token], lexicon: Lexicon) -> int:
    """Where the phrase "how many eggs" at the beginning of ``question`` ends, for "how much milk"; 0 without one."""
    before = tokens_of(question)
    if len(before) < 3 or before[0].lower != spoken[0].lower:
        return 0
    last = 1
    while last < len(before) and before[last].lower in {"many", "much", "veel"}:
        last += 1
    end = last
    while end < len(before) and is_content(before, end, lexicon) and before[end].lower not in lexicon.verbs:
        end += 1
    is_noun = (
        end > last and end < len(before) and before[0].lower in {"how", "which", "what", "welke", "welk", "hoeveel"}
    )
    # "How many eggs go": the verb is unknown to the lexicon and looks like one more noun.
    return before[min(end, last + 1) - 1].end if is_noun else 0


def _is_clause(spoken: list[Token], lexicon: Lexicon) -> bool:
    """ "if I move", "als het regent"; not "when is it paid" or "after lunch"."""
    if len(spoken) < 3:
        return False
    verbs = lexicon.be | lexicon.auxiliaries | lexicon.verbs
    return spoken[1].lower in lexicon.pronouns | lexicon.determiners | {"het"} and (
        spoken[0].lower not in {"after", "before", "once"} or any(token.lower in verbs for token in spoken[2:])
    )


def _is_about_something(fragment: Fragment, lexicon: Lexicon) -> bool:
    """A pronoun is put in full elsewhere; but "after that" is a time, and "one" is named by its adjective."""
    pronouns = [token.lower for token in fragment.spoken if token.lower in lexicon.pronouns | lexicon.demonstratives]
    own = [
        token.lower for token in fragment.spoken if token.lower in {"its", "their", "his", "her", "zijn", "haar", "hun"}
    ]
    if own:
        return False
    if not pronouns or pronouns in (["one"], ["ones"]):
        return True
    spoken = fragment.spoken
    return len(spoken) == 2 and spoken[0].lower in lexicon.prepositions and spoken[1].lower in _POINTING


def _in_this_case(fragment: Fragment, topic: Topic, lexicon: Lexicon) -> Completed:
    text = fragment.text
    spoken = fragment.spoken
    bare = topic.question.rstrip(" ?.!")
    if spoken[-1].lower in _POINTING:
        return f"{bare}, {_and(lexicon)} {text}?", _NO_VERB, topic
    clause = max(bare.rfind(","), bare.rfind(";")) + 1
    first = spoken[0].lower
    same = None
    if first in lexicon.prepositions:
        same = re.compile(rf"(?<!\s)\s++{re.escape(first)}\s", re.I).search(bare, clause)
    if same is None or not same.start():
        return f"{bare} {_with_noun(text, topic.subject)}?", _NO_VERB, topic
    old = bare[same.end() :]
    question = f"{bare[: same.start()]} {_with_noun(text, old)}?"
    others = (old, text.split(maxsplit=1)[-1])
    subject = topic.subject if topic.subject in question else others[1]
    return question, _NO_VERB, replace(topic, question=question, subject=subject, others=others)


def _and(lexicon: Lexicon) -> str:
    return "en" if lexicon.name == "nl" else "and"


def _noun_phrase(fragment: Fragment, topic: Topic, lexicon: Lexicon) -> Completed | None:
    spoken, text = fragment.spoken, fragment.text
    first, head = spoken[0].lower, spoken[-1]
    asks = fragment.question.rstrip().endswith("?")
    is_definite = first in lexicon.determiners | _DEFINITE and first not in _INDEFINITE
    if not fragment.carries_on:
        if first in lexicon.determiners and asks and len(spoken) <= 3 and not has_name(spoken):
            return owned(fragment.question, head.end, topic, lexicon), "noun phrase: of the subject before", topic
        return None
    adjective = lexicon.name == "nl" and is_definite and _DUTCH_ADJECTIVE.fullmatch(head.text) is not None
    if (head.lower in ("one", "ones") and len(spoken) > 1) or adjective:
        return _swap(topic, topic.subject, _with_noun(text if not adjective else f"{text} one", topic.subject))
    if head.lower in _VARIANT and is_definite:
        return _swap(topic, topic.subject, f"{text} {lexicon.of} {topic.subject}")
    if has_name(spoken):
        if (phrase := _named_phrase(topic, lexicon)) and (swapped := _swap(topic, phrase, text)):
            return swapped
    elif is_definite and (lexicon.attributes.fullmatch(head.text) or has_name(tokens_of(topic.subject))):
        return owned(fragment.question, head.end, topic, lexicon), "noun phrase: of the subject before", topic
    elif is_definite and not fragment.has_about and f" {lexicon.of} " in topic.subject:
        whole = topic.subject.split(f" {lexicon.of} ", 1)[1]
        return _swap(topic, topic.subject, f"{text} {lexicon.of} {whole}")
    elif not fragment.has_about and (phrase := _phrase_alike(topic, first, lexicon)):
        return _swap(topic, phrase, text)
    brackets = in_brackets(fragment.question.rstrip(" ?.!") + "?", len(fragment.question.rstrip(" ?.!")), topic.subject)
    return brackets, "noun phrase: the subject before", topic


def _swap(topic: Topic, old: str, new: str) -> Completed | None:
    if old not in topic.question:
        return None
    question = topic.question.replace(old, new, 1)
    subject = topic.subject.replace(old, new, 1) if old in topic.subject else topic.subject
    return question, _ANOTHER, replace(topic, question=question, subject=subject, others=(old, new))


def _named_phrase(topic: Topic, lexicon: Lexicon) -> str:
    """The phrase of the question before that holds a name: its subject, or the last one; empty without one."""
    if has_name(tokens_of(topic.subject)):
        return topic.subject
    named = [text for text, tokens in _phrases(topic.question, lexicon) if has_name(tokens)]
    return named[-1] if named else ""


def _phrase_alike(topic: Topic, first: str, lexicon: Lexicon) -> str:
    """The subject, else the last phrase of the question before, that begins as ``first`` does; empty without one."""
    kind = _kind(first, lexicon)
    if _kind(topic.subject.split()[0].lower(), lexicon) == kind:
        return topic.subject
    alike = [text for text, tokens in _phrases(topic.question, lexicon) if _kind(tokens[0].lower, lexicon) == kind]
    return alike[-1] if alike else ""


def _phrases(question: str, lexicon: Lexicon) -> list[tuple[str, list[Token]]]:
    tokens = tokens_of(question)
    return [
        (question[tokens[phrase.first].start : tokens[phrase.last - 1].end], tokens[phrase.first : phrase.last])
        for phrase in noun_phrases(tokens, lexicon)
    ]


def _kind(word: str, lexicon: Lexicon) -> str:
    if word in _DEFINITE:
        return "definite"
    if word in _INDEFINITE:
        return "indefinite"
    return "possessive" if word in lexicon.determiners else "bare"


def _with_noun(text: str, phrase: str) -> str:
    """ "a temporary one" as "a temporary contract", after "a permanent contract"; of an identifier, all of it."""
    adjective, _, last = text.rpartition(" ")
    if last.lower() not in ("one", "ones"):
        return text
    tokens = [token for token in tokens_of(phrase) if token.is_word]
    if tokens[0].lower in _DEFINITE | _INDEFINITE | words("my our your mijn onze uw") and len(tokens) > 1:
        tokens = tokens[1:]
    nouns = tokens if any(token.is_identifier for token in tokens) else tokens[-1:]
    return f"{adjective} {phrase[nouns[0].start : nouns[-1].end]}"


def has_name(tokens: list[Token] | tuple[Token, ...]) -> bool:
    leads = words("and but or en maar of")
    return any(token.is_identifier or (token.text[:1].isupper() and token.lower not in leads) for token in tokens)
