"""The words of a follow-up that stand for something said before, put in full, in English and Dutch. PURE.

The antecedent of a pronoun within the same clause is never that clause's subject (Chomsky, "Lectures on Government and
Binding", 1981, principle B): of "does the warranty cover it?" the warranty is not what is covered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.reformulation.subjects import Token, is_content, noun_phrases, tokens_of
from retrieval.reformulation.topics import Topic
from retrieval.reformulation.words import Lexicon, words

# "What is it called when ...", "hoe laat is het", "is it possible to ...": the pronoun points forward, or nowhere.
_FORWARD = re.compile(
    r"\b(?:it|this|that)\b(?:(?! and | but )[^,;.?!]){0,80}?\b(?:to|that|when|if|whether|for|like|who|which)\b"
    r"|\bwhat (?:time|day|date|year) (?:is|was) it\b|\bit\s+(?:rains?|snows?|seems|takes? \w+ to)\b"
    r"|\bis it (?:raining|snowing)\b"
    r"|\b(?:het|dat|er\w*+)\b(?:(?! en | maar )[^,;.?!]){0,80}?\b(?:om|dat|als|wanneer|of|indien)\b"
    r"|\bhoe (?:laat is|gaat) het\b|\b(?:regent|sneeuwt) het\b",
    re.I,
)
_THING = words("it they them he she him themselves itself")
_MANY = words("they them themselves ze zij hen")
_OWNED = words("its their")
_OWNED_NL = words("zijn haar hun")
_THING_NL = words("hij hem ze zij")
_WITH = {
    "er": "",
    "van": "van", "mee": "met", "in": "in", "op": "op", "voor": "voor", "bij": "bij", "aan": "aan", "over": "over",
    "tegen": "tegen", "uit": "uit", "naar": "naar",
}  # fmt: skip
_PREPOSITIONAL = re.compile(rf"(?:er|daar|hier)({'|'.join(name for name in _WITH if name != 'er')})")
_PARTICIPLE = re.compile(r"(?:ge|be|ver|ont)\w+[dtn]")
_CLAUSE = words("and but when if while before after because once so or en maar als wanneer terwijl voordat nadat omdat")
# Behind these a pronoun stands for something in the same sentence, whatever that is.
_SUBORDINATE = words("as though although since because so that omdat toen doordat zodat waardoor hoewel nadat voordat")
# What happens, or takes time, is not a thing but what was done: "how long does *that* take?"
_EVENT = words("take takes took happen happens duren duurt gebeuren gebeurt kosten moet")
_SUPERLATIVE = re.compile(r"\s+(?:meest|minst|op (?:één|een|twee|drie) na)\b", re.I)
_MOST_WORDS_BEFORE = 3
_PLURAL = words("people children men women staff police mensen kinderen ouders")


def with_pronouns_resolved(
    question: str, tokens: Sequence[Token], start: int, topic: Topic, lexicon: Lexicon
) -> str | None:
    """The question with the subject in the place of the first pronoun from ``start`` on without an antecedent in it."""
    if _FORWARD.search(question):
        return None
    for index, token in enumerate(tokens):
        if token.start < start or (token.text.isupper() and len(token.text) > 1):
            continue
        resolve = _english if lexicon.name == "en" else _dutch
        if (resolved := resolve(question, tokens, index, topic, lexicon)) is not None:
            return resolved
    return None


def owned(question: str, end: int, topic: Topic, lexicon: Lexicon) -> str:
    """The question with "of" and the subject behind the phrase that ends at ``end``."""
    return f"{question[:end]} {lexicon.of} {topic.subject}{question[end:]}"


def in_brackets(question: str, end: int, words_before: str) -> str:
    return f"{question[:end]} ({words_before}){question[end:]}"


def at_the_end(question: str, words_before: str) -> str:
    """The question with words of the one before behind it, ahead of its question mark."""
    bare = question.rstrip(" ?.!")
    return f"{bare} {words_before}{question[len(bare) :].strip() or '?'}"


def _english(question: str, tokens: Sequence[Token], index: int, topic: Topic, lexicon: Lexicon) -> str | None:
    word = tokens[index].lower
    before = tokens[index - 1].lower if index else ""
    ends = _ends(tokens, index)
    if word in _THING and not _has_antecedent(tokens, index, lexicon, same_clause=False):
        return _thing(question, tokens, index, topic)
    if word in _OWNED and not _has_antecedent(tokens, index, lexicon, same_clause=True):
        last = _end_of_content(tokens, index + 1, lexicon)
        if topic.is_situation:
            return at_the_end(question, topic.situation)
        phrase = question[tokens[index].end : tokens[last - 1].end]
        return f"{question[: tokens[index].start]}the{phrase} of {topic.subject}{question[tokens[last - 1].end :]}"
    if word == "there" and index > 0 and _is_place(tokens, index, lexicon):
        return in_brackets(question, tokens[index].end, topic.subject)
    if word in ("one", "ones") and before in ("which", "this", "that", "these", "another"):
        return in_brackets(question, tokens[index].end, topic.subject)
    does = index > 1 and tokens[index - 2].lower in ("i", "we", "you")
    if word == "one" and ends and does and topic.subject.split()[0].lower() in ("a", "an"):
        return _put(question, tokens[index], topic.subject)
    if word in lexicon.demonstratives and not _has_antecedent(tokens, index, lexicon, same_clause=True):
        return _demonstrative(question, tokens, index, topic, lexicon)
    return None


def _dutch(question: str, tokens: Sequence[Token], index: int, topic: Topic, lexicon: Lexicon) -> str | None:
    word = tokens[index].lower
    before = tokens[index - 1].lower if index else ""
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    ends = _ends(tokens, index)
    if word in _OWNED_NL and before in lexicon.prepositions | {"is", "en"} and not ends:
        last = _end_of_content(tokens, index + 1, lexicon)
        if last > index + 1 and not _has_antecedent(tokens, index, lexicon, same_clause=True):
            phrase = question[tokens[index + 1].start : tokens[last - 1].end]
            return f"{question[: tokens[index].start]}{phrase} van {topic.subject}{question[tokens[last - 1].end :]}"
    if word in _THING_NL and not _has_antecedent(tokens, index, lexicon, same_clause=False):
        return _thing(question, tokens, index, topic)
    is_article = not ends and (
        before in lexicon.prepositions | {lexicon.of} or _SUPERLATIVE.match(question, tokens[index].end)
    )
    if word == "het" and before and not is_article and not _has_antecedent(tokens, index, lexicon, same_clause=False):
        if ends or following is None or following.lower in lexicon.predicates | lexicon.prepositions | lexicon.other:
            return _thing(question, tokens, index, topic)
        is_passive = before in lexicon.be and _ends(tokens, index + 1)
        if (before in lexicon.auxiliaries or is_passive) and _PARTICIPLE.fullmatch(following.lower):
            return _thing(question, tokens, index, topic)
    if word == "daar" and index > 0 and _is_place(tokens, index, lexicon):
        return in_brackets(question, tokens[index].end, topic.subject)
    if (joined := _PREPOSITIONAL.fullmatch(word)) and not _has_antecedent(tokens, index, lexicon, same_clause=False):
        return _put(question, tokens[index], f"{_WITH[joined[1]]} {topic.subject}")
    if word in lexicon.demonstratives and not _has_antecedent(tokens, index, lexicon, same_clause=True):
        return _demonstrative(question, tokens, index, topic, lexicon)
    return None


def _thing(question: str, tokens: Sequence[Token], index: int, topic: Topic) -> str:
    """The pronoun replaced by the subject; kept, where only the situation of the question before explains it."""
    if topic.is_situation:
        return at_the_end(question, topic.situation)
    word = tokens[index].lower
    if word in _MANY and not _is_plural(topic.subject):
        return at_the_end(question, f"({topic.subject})")
    if word in ("it", "het") and topic.action and _is_event(tokens, index):
        return in_brackets(question, tokens[_end_of_event(tokens, index)].end, topic.action)
    return _put(question, tokens[index], topic.subject)


def _is_plural(subject: str) -> bool:
    spoken = subject.lower().split()
    last = spoken[-1]
    joins = any(word in ("and", "or", "en", "of") for word in spoken)
    ending = last.endswith(("s", "en")) and not last.endswith(("ss", "us", "is")) and last.isalpha()
    return joins or ending or last in _PLURAL


def _demonstrative(question: str, tokens: Sequence[Token], index: int, topic: Topic, lexicon: Lexicon) -> str | None:
    """ "does *this* help", "that *pump*"; not "the pump *that* leaks", "I think *that* ..." or "this year"."""
    before = tokens[index - 1].lower if index else ""
    last = _end_of_content(tokens, index + 1, lexicon)
    noun = tokens[last - 1].lower if last > index + 1 else ""
    if last == index + 2 and noun in lexicon.verbs:
        noun = ""
    relative = tokens[index].lower in ("that", "die", "dat")
    verbs = lexicon.be | lexicon.auxiliaries | lexicon.verbs
    if relative and before not in verbs | lexicon.prepositions | {"", "and", "en", "but", "maar", "about", "ik", "i"}:
        return None
    if noun in lexicon.here_and_now or not before:
        return None
    following = tokens[index + 1].lower if index + 1 < len(tokens) else ""
    # "Those from Jacksonville", "zorgen over dat er koolstof vrijkomt"
    if following in ("er", "het") or (tokens[index].lower == "those" and following in lexicon.prepositions):
        return None
    if not noun:
        if topic.is_situation:
            return at_the_end(question, topic.situation)
        refers_to_action = relative or tokens[index].lower in ("this", "dit")
        if refers_to_action and topic.action and (before not in lexicon.be or _is_event(tokens, index)):
            return in_brackets(question, tokens[_end_of_event(tokens, index)].end, topic.action)
        return _put(question, tokens[index], topic.subject)
    if noun in {token.lower for token in tokens_of(topic.subject)}:
        return question[: tokens[index].start] + topic.subject + question[tokens[last - 1].end :]
    return in_brackets(question, tokens[last - 1].end, topic.subject)


def _is_event(tokens: Sequence[Token], index: int) -> bool:
    return any(token.lower in _EVENT for token in (*tokens[max(0, index - 1) : index], *tokens[index + 1 : index + 2]))


def _end_of_event(tokens: Sequence[Token], index: int) -> int:
    """Index of the verb behind the pronoun where that is one of what takes place, else of the pronoun."""
    return index + 1 if index + 1 < len(tokens) and tokens[index + 1].lower in _EVENT else index


def _is_place(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    """Whether "there" is a place spoken of before: not "is there", and no other place in the question itself."""
    exists = tokens[index - 1].lower in lexicon.be | lexicon.auxiliaries and not (
        lexicon.name == "nl" or _ends(tokens, index)
    )
    exists |= index + 1 < len(tokens) and tokens[index + 1].lower in lexicon.be
    exists |= lexicon.name == "en" and tokens[index - 1].lower in lexicon.be
    exists |= tokens[index - 1].lower in lexicon.demonstratives
    located = any(token.lower in lexicon.prepositions for token in tokens[:index])
    return not exists and not located and not _has_antecedent(tokens, index, lexicon, same_clause=False)


def _has_antecedent(tokens: Sequence[Token], index: int, lexicon: Lexicon, *, same_clause: bool) -> bool:
    """Whether a noun phrase before the pronoun can be what it stands for: one of an earlier clause, or of any.

    What says much before its pronoun speaks for itself.
    """
    clause = 0
    for place in range(index - 1, -1, -1):
        # "... says *that they* ...": before a pronoun, these begin a clause.
        begins = tokens[place].lower in ("that", "dat") and place == index - 1 and place > 1
        if begins or tokens[place].lower in _CLAUSE or tokens[place].text in ",;:.?!":
            clause = place
            break
    phrases = noun_phrases(list(tokens[:index]), lexicon)
    if sum(phrase.last - phrase.first for phrase in phrases) > _MOST_WORDS_BEFORE:
        return True
    if index > 1 and tokens[index - 1].lower in _SUBORDINATE and phrases:
        return True
    if any(phrase.last <= clause for phrase in phrases):
        return True
    return same_clause and any(
        tokens[phrase.first].lower in lexicon.determiners
        or tokens[phrase.last - 1].is_identifier
        or _is_name(tokens, phrase.first)
        for phrase in phrases
    )


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    return index > 0 and tokens[index].text[:1].isupper()


def _end_of_content(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> int:
    while index < len(tokens) and is_content(tokens, index, lexicon):
        index += 1
    return index


def _ends(tokens: Sequence[Token], index: int) -> bool:
    return index + 1 >= len(tokens) or not tokens[index + 1].is_word


def _put(question: str, token: Token, instead: str) -> str:
    return question[: token.start] + instead + question[token.end :]
