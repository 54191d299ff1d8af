"""Follow-up questions completed from the question before them, by rule, in English and Dutch. PURE.

A follow-up is told by a pronoun without an antecedent in the question itself ("how do I install *it*?"), by a
beginning that carries on ("and in winter?", "what about its price?"), by asking to choose between two ("which of the
two is lighter?"), or by being no sentence at all ("why?"). What is not certainly one is left as it is: a wrong subject
costs the answer, a missing one only makes the question vaguer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from retrieval.reformulation.comparisons import of_the_two
from retrieval.reformulation.fragments import Fragment, completed_fragment
from retrieval.reformulation.pronouns import at_the_end, in_brackets, owned, with_pronouns_resolved
from retrieval.reformulation.subjects import Token, is_content, noun_phrases, tokens_of
from retrieval.reformulation.topics import Topic, situation_of
from retrieval.reformulation.words import LEXICONS, Lexicon, language_of, words


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
_COMPARATIVE = re.compile(r"\w{2,}er|minder|anders|wie|wat|hoe|waar", re.I)
# "The company", in a company's documents, is known before anybody spoke of it.
_KNOWN_TO_ALL = words(
    """company office hospital school university team organisation organization council municipality city country
    government public library shop bedrijf kantoor ziekenhuis universiteit organisatie gemeente stad land
    overheid bibliotheek winkel world wereld internet"""
)
_MOST_WORDS_OF_MENTION = 10


def complete(question: str, topic: Topic | None) -> Completion | None:
    """The question completed with what the conversation is about; None when it is complete, or that cannot be told."""
    if topic is None:
        return None
    spoken = language_of(question)
    language = spoken or language_of(topic.question) or "en"
    if spoken and language_of(topic.question) not in ("", spoken):
        return None
    lexicon = LEXICONS[language]
    if _MORE.fullmatch(question):
        return Completion(topic.question, "asks for more of the question before", topic)
    if _BARE.fullmatch(question):
        return Completion(f"{question} {topic.question}", "question word alone: the question before it", topic)
    if topic.others is not None and (compared := of_the_two(question, topic.others, lexicon.name)):
        return Completion(compared, "comparison: the two things spoken of", topic)
    tokens = tokens_of(question)
    lead = _LEAD[language].match(question)
    start = lead.end() if lead else 0
    rest = [token for token in tokens if token.start >= start]
    if not any(token.is_word for token in rest):
        return None
    fragment = Fragment(question, tuple(rest), bool(lead and lead["and"]), bool(lead and lead["about"]))
    if (completed := completed_fragment(fragment, topic, lexicon)) is not None:
        return Completion(*completed)
    if (resolved := with_pronouns_resolved(question, tokens, start, topic, lexicon)) is not None:
        return Completion(
            resolved, "pronoun: the subject of the question before", _move_subject(topic, resolved, start)
        )
    if (resolved := _in_that_case(question, rest, topic, lexicon)) is not None:
        return Completion(resolved, '"then": in the case of the question before', topic)
    if fragment.is_sentence(lexicon):
        if lead and lead["and"] and not lead["about"]:
            return _of_subject(question, rest, topic, lexicon)
        return _find_mentioned(question, rest, topic, lexicon)
    return None


def _move_subject(topic: Topic, resolved: str, start: int) -> Topic:
    """The topic with the question just completed, which is asked of the next thing: "and what does the other cost?" """
    question = resolved[start:]
    is_plain = topic.subject in question and "(" not in question
    return replace(topic, question=question[:1].upper() + question[1:]) if is_plain else topic


def _in_that_case(question: str, rest: list[Token], topic: Topic, lexicon: Lexicon) -> str | None:
    """ "Does the pump keep running *then*?": in the case, or with the thing, that was asked about."""
    spoken = [token for token in rest if token.is_word]
    if situation_of(question) or len(spoken) < 3:
        return None
    for index, token in enumerate(spoken[1:], start=1):
        if token.lower != ("then" if lexicon.name == "en" else "dan"):
            continue
        if lexicon.name == "en" and token is not spoken[-1]:
            continue
        follows = spoken[index + 1].lower if index + 1 < len(spoken) else ""
        compares = any(_COMPARATIVE.fullmatch(before.text) for before in spoken[:index])
        if lexicon.name == "nl" and (compares or follows not in {"", "nog", "ook", "toch", "wel", "weer", "niet"}):
            continue
        if topic.situation:
            without = question[: token.start].rstrip() + question[token.end :]
            return at_the_end(without, topic.situation)
        case = "in case of" if lexicon.name == "en" else "bij"
        return f"{question[: token.start]}{case} {topic.subject}{question[token.end :]}"
    return None


def _of_subject(question: str, rest: list[Token], topic: Topic, lexicon: Lexicon) -> Completion | None:
    """ "And how long is the warranty?" asks for the warranty of what was spoken of; with more words it stands alone."""
    phrases = noun_phrases(rest, lexicon)
    if len(phrases) != 1 or rest[phrases[0].first].lower not in {"the", "de", "het"}:
        return None
    end = rest[phrases[0].last - 1]
    if any(token.lower in lexicon.prepositions | {lexicon.of} for token in rest) or end.is_identifier:
        return None
    return Completion(owned(question, end.end, topic, lexicon), "definite noun phrase: of the subject before", topic)


def _find_mentioned(question: str, rest: list[Token], topic: Topic, lexicon: Lexicon) -> Completion | None:
    """ "What should *the device* be called?", where the answer before spoke of a device, or its question of one."""
    spoken = [token for token in rest if token.is_word]
    if len(spoken) > _MOST_WORDS_OF_MENTION or any(token.lower == lexicon.of for token in spoken):
        return None
    if any(token.is_identifier or (index and token.text[:1].isupper()) for index, token in enumerate(spoken)):
        return None
    phrases = [phrase for phrase in noun_phrases(rest, lexicon) if rest[phrase.first].lower in {"the", "de", "het"}]
    if len(phrases) != 1 or phrases[0].last - phrases[0].first != 2:
        return None
    article, noun = rest[phrases[0].first], rest[phrases[0].last - 1]
    if noun.lower in lexicon.here_and_now | _KNOWN_TO_ALL or not is_content(rest, phrases[0].last - 1, lexicon):
        return None
    rule = "definite noun phrase: spoken of before"
    of_subject = {token.lower for token in tokens_of(topic.subject)}
    if noun.lower in of_subject and len(of_subject) > 2:
        return Completion(question[: article.start] + topic.subject + question[noun.end :], rule, topic)
    if {noun.lower, f"{noun.lower}s", f"{noun.lower}en"} & {token.lower for token in tokens_of(topic.answer)}:
        return Completion(in_brackets(question, noun.end, topic.action or topic.subject), rule, topic)
    return None
