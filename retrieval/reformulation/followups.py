"""Follow-up questions completed from the question before them, by rule, in English and Dutch. PURE.

A follow-up is told by a pronoun without an antecedent in the question itself ("how do I install *it*?"), by a
beginning that carries on ("and in winter?", "what about its price?"), or by being no sentence at all ("why?"). What is
not certainly one is left as it is: a wrong subject costs the answer, a missing one only makes the question vaguer.

The antecedent of a pronoun within the same clause is never that clause's subject (Chomsky, "Lectures on Government and
Binding", 1981, principle B): of "does the warranty cover it?" the warranty is not what is covered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.reformulation.subjects import Token, is_content, noun_phrases, subject_of, tokens_of
from retrieval.reformulation.words import LEXICONS, Lexicon, language_of, words


@dataclass(frozen=True, slots=True)
class Topic:
    """What the conversation is about: the last complete question, and its subject, which is not empty."""

    question: str
    subject: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A follow-up completed, the rule that did it, and what the conversation is about from here on."""

    question: str
    rule: str
    topic: Topic


_LEAD = {
    "en": re.compile(r"(?:(?P<and>(?:and|but|or|also)\b)[\s,]*)?(?P<about>(?:what|how) about\b)?[\s,]*", re.I),
    "nl": re.compile(
        r"(?:(?P<and>(?:en|maar|of)\b)[\s,]*)?(?:ook\s+)?"
        r"(?P<about>hoe zit (?:het|dat)(?: dan)?(?: met(?= (?!de?ze |dit |die |dat )))?|wat betreft"
        r"|geldt dat(?: ook)?)?[\s,]*",
        re.I,
    ),
}
_MORE = re.compile(
    r"(?:(?:please )?(?:can you |could you )?(?:tell me more"
    r"|(?:give (?:me )?)?(?:some )?more (?:details?|information|info)"
    r"|explain (?:that|this|it)(?: (?:further|in more detail|please))?|elaborate|go on|continue)"
    r"|(?:kunt u |kun je )?(?:mij |me )?(?:vertel (?:me )?meer|meer (?:informatie|details?|uitleg)|leg (?:dat|dit) uit"
    r"|(?:dat|dit) uitleggen|ga (?:door|verder))(?: hierover| daarover| about (?:it|that|this))?)[\s.?!]*",
    re.I,
)
_BARE = re.compile(
    r"(?:(?:and|but|en|maar)\s+)?(?:why(?: not| is that)?|how(?: so| come| exactly)?|when(?: exactly)?"
    r"|where(?: exactly)?|who|since when|until when|how (?:much|many|long|often)|for example|an example|like what"
    r"|waarom(?: niet| is dat)?|hoe(?: dan)?|hoezo|wanneer(?: precies)?|waar(?: precies)?|wie|sinds wanneer|tot wanneer"
    r"|hoe (?:lang|vaak)|hoeveel|bijvoorbeeld|een voorbeeld|zoals)\s*[?.!]+",
    re.I,
)
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
_LONGEST_FRAGMENT_WORDS = 6


def complete(question: str, topic: Topic | None) -> Completion | None:
    """The question completed with what the conversation is about; None when it is complete, or that cannot be told."""
    if topic is None:
        return None
    language = language_of(question, topic.question) or "en"
    lexicon = LEXICONS[language]
    if _MORE.fullmatch(question):
        return Completion(topic.question, "asks for more of the question before", topic)
    if _BARE.fullmatch(question):
        return Completion(f"{question} {topic.question}", "question word alone: the question before it", topic)
    tokens = tokens_of(question)
    lead = _LEAD[language].match(question)
    start = lead.end() if lead else 0
    carries_on = bool(lead and (lead["and"] or lead["about"]))
    rest = [token for token in tokens if token.start >= start]
    if not any(token.is_word for token in rest):
        return None
    if (resolved := _with_pronouns_resolved(question, tokens, start, topic, lexicon)) is not None:
        return Completion(resolved, "pronoun: the subject of the question before", topic)
    if _is_sentence(rest, lexicon):
        return _of_subject(question, rest, topic, lexicon) if carries_on and not (lead and lead["about"]) else None
    return _fragment(question, rest, topic, lexicon, carries_on=carries_on)


def topic_of(question: str) -> Topic | None:
    """What a complete question makes the conversation be about; None when it names nothing."""
    subject = subject_of(question, LEXICONS[language_of(question) or "en"])
    # A quotation demands its words of every passage; carried over, that would be more than was asked.
    subject = re.sub(r'["“”«»]', "", subject).strip()
    return Topic(question, subject) if subject else None


def _fragment(
    question: str, rest: list[Token], topic: Topic, lexicon: Lexicon, *, carries_on: bool
) -> Completion | None:
    spoken = [token for token in rest if token.is_word]
    if len(spoken) > _LONGEST_FRAGMENT_WORDS or any(token.is_excluded for token in rest):
        return None
    asks = question.rstrip().endswith("?")
    first, text = spoken[0].lower, question[spoken[0].start : spoken[-1].end]
    if first in lexicon.prepositions and (carries_on or asks):
        return Completion(_joined(topic.question, text, lexicon), "no verb: the question before, in this case", topic)
    if carries_on and not any(is_content(rest, index, lexicon) for index in range(len(rest))):
        return Completion(_joined(topic.question, text, lexicon), "no verb: the question before, in this case", topic)
    if any(token.lower == lexicon.of for token in spoken[1:]):
        return None
    if first in lexicon.determiners and (carries_on or (asks and len(spoken) <= 3)) and not _has_name(spoken):
        return Completion(_owned(question, spoken[-1].end, topic, lexicon), "noun phrase: of the subject before", topic)
    if not carries_on:
        return None
    if _has_name(spoken) and topic.subject in topic.question and _has_name(tokens_of(topic.subject)):
        swapped = topic.question.replace(topic.subject, text, 1)
        return Completion(swapped, "another thing: the same question of it", Topic(swapped, text))
    return Completion(
        f"{question} ({topic.subject})", "noun phrase: the subject before", Topic(topic.question, topic.subject)
    )


def _of_subject(question: str, rest: list[Token], topic: Topic, lexicon: Lexicon) -> Completion | None:
    """ "And how long is the warranty?" asks for the warranty of what was spoken of; with more words it stands alone."""
    phrases = noun_phrases(rest, lexicon)
    if len(phrases) != 1 or rest[phrases[0].first].lower not in {"the", "de", "het"}:
        return None
    end = rest[phrases[0].last - 1]
    if any(token.lower in lexicon.prepositions | {lexicon.of} for token in rest) or end.is_identifier:
        return None
    return Completion(_owned(question, end.end, topic, lexicon), "definite noun phrase: of the subject before", topic)


def _with_pronouns_resolved(
    question: str, tokens: Sequence[Token], start: int, topic: Topic, lexicon: Lexicon
) -> str | None:
    """The question with the subject in the place of the first pronoun from ``start`` on without an antecedent in it."""
    if _FORWARD.search(question):
        return None
    for index, token in enumerate(tokens):
        if token.start < start or (token.text.isupper() and len(token.text) > 1):
            continue
        found = (_english if lexicon.name == "en" else _dutch)(question, tokens, index, topic, lexicon)
        if found is not None:
            return found
    return None


def _english(question: str, tokens: Sequence[Token], index: int, topic: Topic, lexicon: Lexicon) -> str | None:
    word = tokens[index].lower
    before = tokens[index - 1].lower if index else ""
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    ends = following is None or not following.is_word
    if word in _THING and not _has_antecedent(tokens, index, lexicon, same_clause=False):
        return _put(question, tokens[index], topic.subject)
    if word in _OWNED and not _has_antecedent(tokens, index, lexicon, same_clause=True):
        last = index + 1
        while last < len(tokens) and is_content(tokens, last, lexicon):
            last += 1
        owned = question[tokens[index].end : tokens[last - 1].end]
        return f"{question[: tokens[index].start]}the{owned} of {topic.subject}{question[tokens[last - 1].end :]}"
    if word == "there" and ends and index > 0 and before not in lexicon.be:
        return f"{question[: tokens[index].start]}there ({topic.subject}){question[tokens[index].end :]}"
    if word in ("one", "ones") and before in ("which", "this", "that", "these", "another", "another"):
        return f"{question[: tokens[index].end]} ({topic.subject}){question[tokens[index].end :]}"
    if word in lexicon.demonstratives and not _has_antecedent(tokens, index, lexicon, same_clause=True):
        return _demonstrative(question, tokens, index, topic, lexicon)
    return None


def _dutch(question: str, tokens: Sequence[Token], index: int, topic: Topic, lexicon: Lexicon) -> str | None:
    word = tokens[index].lower
    before = tokens[index - 1].lower if index else ""
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    ends = following is None or not following.is_word
    if word in _OWNED_NL and before in lexicon.prepositions | {"is", "en"} and not ends:
        last = index + 1
        while last < len(tokens) and is_content(tokens, last, lexicon):
            last += 1
        if last > index + 1 and not _has_antecedent(tokens, index, lexicon, same_clause=True):
            owned = question[tokens[index + 1].start : tokens[last - 1].end]
            return f"{question[: tokens[index].start]}{owned} van {topic.subject}{question[tokens[last - 1].end :]}"
    if word in _THING_NL and not _has_antecedent(tokens, index, lexicon, same_clause=False):
        return _put(question, tokens[index], topic.subject)
    if word == "het" and before and not _has_antecedent(tokens, index, lexicon, same_clause=False):
        if ends or following is None or following.lower in lexicon.predicates | lexicon.prepositions | lexicon.other:
            return _put(question, tokens[index], topic.subject)
        if before in lexicon.auxiliaries and _PARTICIPLE.fullmatch(following.lower):
            return _put(question, tokens[index], topic.subject)
    if word == "daar" and ends and index > 0:
        return f"{question[: tokens[index].end]} ({topic.subject}){question[tokens[index].end :]}"
    if (joined := _PREPOSITIONAL.fullmatch(word)) and not _has_antecedent(tokens, index, lexicon, same_clause=False):
        return _put(question, tokens[index], f"{_WITH[joined[1]]} {topic.subject}")
    if word in lexicon.demonstratives and not _has_antecedent(tokens, index, lexicon, same_clause=True):
        return _demonstrative(question, tokens, index, topic, lexicon)
    return None


def _demonstrative(question: str, tokens: Sequence[Token], index: int, topic: Topic, lexicon: Lexicon) -> str | None:
    """ "does *this* help", "that *pump*"; not "the pump *that* leaks", "I think *that* ..." or "this year"."""
    before = tokens[index - 1].lower if index else ""
    last = index + 1
    while last < len(tokens) and is_content(tokens, last, lexicon):
        last += 1
    noun = tokens[last - 1].lower if last > index + 1 else ""
    relative = tokens[index].lower in ("that", "die", "dat")
    verbs = lexicon.be | lexicon.auxiliaries | lexicon.verbs
    if relative and before not in verbs | lexicon.prepositions | {"", "and", "en", "but", "maar", "about", "ik", "i"}:
        return None
    if noun in lexicon.here_and_now or not before:
        return None
    if not noun:
        return _put(question, tokens[index], topic.subject)
    if noun in {token.lower for token in tokens_of(topic.subject)}:
        return question[: tokens[index].start] + topic.subject + question[tokens[last - 1].end :]
    end = tokens[last - 1].end
    return f"{question[:end]} ({topic.subject}){question[end:]}"


def _has_antecedent(tokens: Sequence[Token], index: int, lexicon: Lexicon, *, same_clause: bool) -> bool:
    """Whether a noun phrase before the pronoun can be what it stands for: one of an earlier clause, or of any."""
    clause = 0
    for place in range(index - 1, -1, -1):
        # "... says *that they* ...": before a pronoun, these begin a clause.
        begins = tokens[place].lower in ("that", "dat") and place == index - 1 and place > 1
        if begins or tokens[place].lower in _CLAUSE or tokens[place].text in ",;:.?!":
            clause = place
            break
    upto = index if same_clause else clause
    before = list(tokens[:upto])
    return any(
        before[phrase.first].lower in lexicon.determiners
        or before[phrase.last - 1].is_identifier
        or _is_name(before, phrase.first)
        for phrase in noun_phrases(before, lexicon)
    )


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    return index > 0 and tokens[index].text[:1].isupper()


def _has_name(tokens: Sequence[Token]) -> bool:
    return any(token.is_identifier or (token.text[:1].isupper() and token.lower not in _CLAUSE) for token in tokens)


def _is_sentence(tokens: Sequence[Token], lexicon: Lexicon) -> bool:
    finite = lexicon.be | lexicon.auxiliaries | lexicon.question_words
    return any(
        token.lower in finite or (token.lower in lexicon.verbs and not is_content(tokens, index, lexicon))
        for index, token in enumerate(tokens)
        if token.is_word
    ) or any(token.lower in {"i", "we", "ik", "je", "wij"} for token in tokens)


def _put(question: str, token: Token, instead: str) -> str:
    return question[: token.start] + instead + question[token.end :]


def _owned(question: str, end: int, topic: Topic, lexicon: Lexicon) -> str:
    return f"{question[:end]} {lexicon.of} {topic.subject}{question[end:]}"


def _joined(question: str, fragment: str, lexicon: Lexicon) -> str:
    """The question with the fragment at its end, in the place of one that begins with the same preposition."""
    bare = question.rstrip(" ?.!")
    first = fragment.split()[0]
    if first.lower() in lexicon.prepositions:
        clause = max(bare.rfind(","), bare.rfind(";")) + 1
        same = re.compile(rf"(?<!\s)\s++{re.escape(first)}\s", re.I).search(bare, clause)
        bare = bare[: same.start()] if same and same.start() else bare
    return f"{bare} {fragment}?"
