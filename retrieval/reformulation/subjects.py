"""What a question is about: its subject noun phrase, found by the small words around it. PURE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.reformulation.words import Lexicon

_TOKEN = re.compile(
    r'"[^"]+"|“[^”]{1,300}”|«[^»]{1,300}»|`[^`]+`'  # a quotation or code is one token, whatever it holds
    r"|(?<!\S)--\w+(?:[-.=]\w+)*"
    r"|(?:(?<!\S)[-+])?\w+(?:(?:::|[-./#'’_])\w+)*(?:\(\))?[+#]*"
    r"|[^\w\s]"
)
_LONGEST_SUBJECT_WORDS = 10
# "A for loop", "an if statement": the first word of the noun.
_KEYWORDS = frozenset({"for", "if", "while", "with", "do", "else", "not", "and", "or", "as"})


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a whole quotation, or a punctuation mark, at ``question[start:end]``."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.lower().replace("’", "'")

    @property
    def is_word(self) -> bool:
        return any(character.isalnum() for character in self.text)

    @property
    def is_protected(self) -> bool:
        """Quoted, code, or excluded from the search: never replaced, and never part of a subject if excluded."""
        return self.text[0] in '"“«`' or self.is_excluded

    @property
    def is_excluded(self) -> bool:
        return self.text[0] == "-" and len(self.text) > 1 and self.text[1] != "-"

    @property
    def is_identifier(self) -> bool:
        """Looks like the name of a thing: a digit, an underscore, or a capital behind the first letter."""
        text = self.text
        if self.is_excluded or not self.is_word:
            return False
        return (
            self.is_protected
            or any(c.isdigit() or c in "_:" for c in text)
            or text[:2] == "--"
            or text[1:] != text[1:].lower()
        )


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """``tokens[first:last]``; ``before`` is the word in front of it, in lower case, empty at the beginning."""

    first: int
    last: int
    before: str


def tokens_of(question: str) -> list[Token]:
    return [Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(question)]


def is_content(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    """Whether the word carries meaning of its own. A verb of the lexicon does where a determiner makes it a noun."""
    token = tokens[index]
    if not token.is_word or token.is_excluded:
        return False
    if token.is_protected:
        return True
    if token.lower in lexicon.function_words:
        # "IT", "US", "WHO", "Will": a capital inside the sentence makes it a name.
        return index > 0 and token.text[0].isupper() and token.text.isupper() and len(token.text) > 1
    if token.lower in lexicon.verbs:
        before = tokens[index - 1].lower if index else ""
        return before in lexicon.determiners or before in lexicon.demonstratives
    return True


def noun_phrases(tokens: Sequence[Token], lexicon: Lexicon) -> list[NounPhrase]:
    """The runs of content words, each with the determiner in front of it, in order."""
    phrases: list[NounPhrase] = []
    index = 0
    while index < len(tokens):
        if not is_content(tokens, index, lexicon) or _is_verb_after_pronoun(tokens, index, lexicon):
            index += 1
            continue
        last = index
        while last < len(tokens) and is_content(tokens, last, lexicon):
            last += 1
        first = index
        if first and tokens[first - 1].lower in lexicon.determiners | lexicon.demonstratives:
            first -= 1
        elif (
            first > 1 and tokens[first - 2].lower in {"a", "an", "the", "een"} and tokens[first - 1].lower in _KEYWORDS
        ):
            first -= 2
        before = tokens[first - 1].lower if first else ""
        end = _without_predicate(tokens, first, last, before, lexicon)
        is_predicate = end == first + 1 and before in lexicon.be and tokens[first].lower in lexicon.predicates
        if end > first and not is_predicate:
            phrases.append(NounPhrase(first, end, before))
        index = last
    return phrases


def subject_of(question: str, lexicon: Lexicon) -> str:
    """The noun phrase the question is about, as it is written there; empty when none stands out.

    Of an attribute ("the price of the pump") it is what has the attribute.
    """
    tokens = tokens_of(question)
    phrases = noun_phrases(tokens, lexicon)
    if not phrases:
        return ""
    index = _main(tokens, phrases, lexicon)
    last = index
    # "the battery of the thermostat" is one phrase; of "the price of the pump", the pump is what is discussed.
    if index == 0 and phrases[0].before in {"much", "hoeveel"}:
        purpose = next((phrase for phrase in phrases if phrase.before in ("for", "voor")), None)
        asked = _text(question, tokens, phrases[0])
        return f"{asked} {purpose.before} {_text(question, tokens, purpose)}" if purpose else asked
    while last + 1 < len(phrases) and _joins(tokens, phrases[last], phrases[last + 1], lexicon):
        if lexicon.attributes.fullmatch(tokens[phrases[index].last - 1].text) and index == last:
            index += 1
        last += 1
    words = tokens[phrases[index].first : phrases[last].last][:_LONGEST_SUBJECT_WORDS]
    return question[words[0].start : words[-1].end]


def _text(question: str, tokens: Sequence[Token], phrase: NounPhrase) -> str:
    return question[tokens[phrase.first].start : tokens[phrase.last - 1].end]


def _main(tokens: Sequence[Token], phrases: Sequence[NounPhrase], lexicon: Lexicon) -> int:
    """Index of the phrase that names the subject: one that holds an identifier, else the first that is not part of the
    question word ("how many *rooms*", "which *documents*")."""
    for index, phrase in enumerate(phrases):
        if any(token.is_identifier for token in tokens[phrase.first : phrase.last]):
            return index
    if phrases[0].before in {"much", "hoeveel"} and _is_received(tokens, phrases[0].last, lexicon):
        return 0
    asked = lexicon.question_words | {"many", "much", "veel"}
    free = [index for index, phrase in enumerate(phrases) if phrase.before not in asked]
    return free[0] if free else 0


def _is_received(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    """ "How much *subsidy do I get*": what is asked for is the subject, not who gets it."""
    pronouns = {"i", "we", "you", "they", "ik", "wij", "je", "u"}
    return any(token.lower in pronouns for token in tokens[index : index + 2 + (lexicon.name == "en")])


def _joins(tokens: Sequence[Token], phrase: NounPhrase, following: NounPhrase, lexicon: Lexicon) -> bool:
    between = [token.lower for token in tokens[phrase.last : following.first]]
    if between in ([lexicon.of], ["between"], ["tussen"]):
        return True
    return between in (["and"], ["en"]) and phrase.before in ("between", "tussen")


def _is_verb_after_pronoun(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    """ "how do I *install* ...", "hoe *installeer* ik ...": what stands beside a personal pronoun is the verb."""
    personal = {"i", "you", "we", "they", "he", "she", "people", "ik", "je", "jij", "u", "wij", "jullie", "men"}
    if tokens[index].is_identifier:
        return False
    before = [token.lower for token in tokens[max(0, index - 2) : index]]
    after = tokens[index + 1].lower if index + 1 < len(tokens) else ""
    if lexicon.name == "nl":
        return (
            after in personal and bool(before) and before[-1] in lexicon.question_words | {"en", "maar", "lang", "veel"}
        )
    if before and before[-1] in personal | {"to"} and not (len(before) == 2 and before[0] in lexicon.determiners):
        return True
    return len(before) == 0 and index == 0 and tokens[0].text[:1].isupper() and after in lexicon.determiners


def _without_predicate(tokens: Sequence[Token], first: int, last: int, before: str, lexicon: Lexicon) -> int:
    """Where the phrase ends when the verb or the adjective that follows a subject is left out of it."""
    content = last - first - (tokens[first].lower in lexicon.determiners | lexicon.demonstratives)
    if content < 2:
        return last
    final = tokens[last - 1]
    if final.is_identifier:
        return last
    if before in lexicon.be:
        describes = final.lower in lexicon.predicates or final.lower.endswith(("ed", "able", "ible"))
        return last - 1 if describes else last
    if before in lexicon.auxiliaries:
        follows = tokens[last].lower if last < len(tokens) else ""
        # A question with an auxiliary has its verb behind the subject: it is the last word here, or the next.
        if lexicon.name == "en" and follows not in lexicon.verbs:
            return last - 1
    if lexicon.name == "nl" and (
        final.lower in lexicon.predicates or _ends_in_infinitive(tokens, first, final, lexicon)
    ):
        return last - 1
    return last


def _ends_in_infinitive(tokens: Sequence[Token], first: int, final: Token, lexicon: Lexicon) -> bool:
    """ "Kan ik mijn hond *meenemen*?": behind a modal verb, a Dutch question ends with an infinitive."""
    modal = any(token.lower in lexicon.auxiliaries for token in tokens[:first])
    words = [token for token in tokens if token.is_word]
    return modal and final is words[-1] and final.lower.endswith("n")
