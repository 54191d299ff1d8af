"""Questions that a passage answers, taken from its heading and its definitions by rule. PURE.

Asked in the words a reader would use, they are a second way to a passage whose own words differ. A rule that might give
an ungrammatical question gives none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from retrieval.ingest.extraction.lines import plain_title
from retrieval.text.language import detect_language

NAME = "rules"
MAX_QUESTIONS = 2
_MAX_WORDS = 14
_MAX_CHARS = 120

_NUMBERING = re.compile(r"^(?:\d{1,3}(?:\.\d{1,3})*[.)]?|[a-zA-Z][.)])\s++(?=\S)")
_CALL = re.compile(r"[A-Za-z_$][\w$]*+(?:(?:\.|::)[A-Za-z_$][\w$]*+)*\(.*\)")
_NAME = re.compile(r"[A-Za-z_$][\w$]*+(?:(?:\.|::)[A-Za-z_$][\w$]*+)*")
_CAMEL = re.compile(r"[a-z][a-z0-9]*+(?:[A-Z][a-z0-9]*+)+")
_PROSE_BREAK = re.compile(r"\n\s*\n|(?<=[.!?])\s+")
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.M | re.S)
_MARKUP = re.compile(r"[|{}<>=\\/*_`\[\]#]|::")

_QUESTION_START = {
    "en": re.compile(
        r"(?:(?:how|what|when|where|why|who|which)\s++(?:is|are|do|does|did|can|should|will|must|may)|(?:can|does|do|is|are|should|may|must)\s++(?:i|you|we|my|your|the))\s++\w.*",
        re.I,
    ),
    "nl": re.compile(
        r"(?:(?:hoe|wat|waar|wanneer|waarom|wie)\s++(?:is|zijn|kan|kun|kunt|kunnen|moet|moeten|mag|mogen|doe|doet|doen|werkt|werken|wordt|worden|heb|hebt|heeft)"
        r"|(?:kan|kun|mag|moet|heb|ben)\s++(?:ik|je|jij|u|we|wij))\s++\w.*",
        re.I,
    ),
}
_HOW_TO = re.compile(r"how\s++to\s++([a-z]++)\s++(\S.*)", re.I)
_GERUNDS = {
    "adding": "add",
    "building": "build",
    "changing": "change",
    "checking": "check",
    "configuring": "configure",
    "connecting": "connect",
    "creating": "create",
    "customizing": "customize",
    "customising": "customise",
    "debugging": "debug",
    "defining": "define",
    "deleting": "delete",
    "deploying": "deploy",
    "disabling": "disable",
    "enabling": "enable",
    "exporting": "export",
    "importing": "import",
    "installing": "install",
    "managing": "manage",
    "migrating": "migrate",
    "optimizing": "optimize",
    "overriding": "override",
    "registering": "register",
    "removing": "remove",
    "renaming": "rename",
    "replacing": "replace",
    "requesting": "request",
    "restoring": "restore",
    "returning": "return",
    "running": "run",
    "sending": "send",
    "serving": "serve",
    "setting up": "set up",
    "starting": "start",
    "stopping": "stop",
    "testing": "test",
    "updating": "update",
    "upgrading": "upgrade",
    "uploading": "upload",
    "using": "use",
    "validating": "validate",
    "writing": "write",
}
_GERUND = re.compile(rf"({'|'.join(_GERUNDS)})\s++(\S.*)", re.I)
_NO_OBJECT = re.compile(
    r"^(?:with|without|in|on|at|by|as|via|of|and|or)\b|\b(?:our|it|its|them|this|these|that|and)\b", re.I
)
_YOUR = re.compile(r"\byour\b", re.I)
_PLURALS = {
    "en": re.compile(
        r"(?:hours|requirements|options|limits|limitations|rules|fees|costs|prices|rates|prerequisites|benefits|exceptions|deadlines|conditions|specifications)",
        re.I,
    ),
    "nl": re.compile(
        r"\w*(?:uren|tijden|kosten|regels|voorwaarden|gegevens|eisen|tarieven|prijzen|mogelijkheden|uitzonderingen|instellingen|termijnen|vereisten)",
        re.I,
    ),
}
_SINGULARS = {
    "en": re.compile(
        r"(?:policy|procedure|process|deadline|address|purpose|schedule|architecture|period|limit|price|fee)", re.I
    ),
    "nl": re.compile(r"\w+(?:procedure|regeling|termijn|adres|nummer|beleid|tarief|periode)", re.I),
}
_DUTCH_NEUTER = re.compile(r"\w*(?:adres|nummer|beleid|tarief)", re.I)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LINKING = _words(
    """
        and or of for to in on with from by at the a an en of voor in op met van de het een bij naar te om
        """
)

_DEFINITION = {
    "en": re.compile(
        r"(?P<article>(?:an?|the)\s++)?(?P<term>[\w+#.-]++(?:\s++[\w+#.-]++){0,3}?)\s++(?P<verb>is|are)\s++(?:an?|the|used\s++to|used\s++for|any)\s++\w.{10,}",
        re.I | re.S,
    ),
    "nl": re.compile(
        r"(?P<article>(?:een|de|het)\s++)?(?P<term>[\w+#.-]++(?:\s++[\w+#.-]++){0,2}?)\s++(?P<verb>is|zijn)\s++(?:een|de|het|bedoeld\s++voor)\s++\w.{10,}",
        re.I | re.S,
    ),
}
# Words that make a subject point elsewhere, or that show the match to be no subject at all.
_NO_TERM = {
    "en": _words(
        """
        it this that these those there here he she they we you i what which who where when how why if then so but
        and or as one first second third last next following only main other another same result reason problem idea
        point default example difference goal aim answer question advantage disadvantage exception rule best most
        such each every all both some any no not also for in on at by with from to of note warning my your his her
        its our their can will may must should has have do does was were be been being more less new above below
        rest latter former case value text code name number order way time day thing part
        """
    ),
    "nl": _words(
        """
        het dit dat deze die er hier daar hij zij ze we wij je jij u ik wat welke wie waar wanneer hoe waarom als
        dan maar en of ook eerste tweede derde laatste volgende enige andere ander zelfde gevolg reden probleem idee
        punt voorbeeld verschil doel antwoord vraag voordeel nadeel uitzondering regel beste meeste elk elke alle
        beide sommige geen niet voor in op bij met van naar om te let mijn jouw uw zijn haar ons onze hun kan zal
        mag moet heeft hebben was waren meer minder nieuwe boven onder rest geval waarde tekst code bedoeling naam
        nummer volgorde manier tijd dag ding deel
        """
    ),
}


class RuleBasedQuestions:
    """Implements ``QuestionGenerator`` without a model: at most two questions, in English or Dutch, often none."""

    name = NAME

    def generate(self, text: str, heading_path: Sequence[str], language: str = "") -> list[str]:
        language = language if language in _DEFINITION else detect_language(text)
        if language not in _DEFINITION:
            return []
        questions: list[str] = []
        heading = _NUMBERING.sub("", plain_title(heading_path[-1])).strip(" .:") if heading_path else ""
        for question in (*_from_heading(heading, text, language), *_from_definitions(text, language)):
            known = {earlier.casefold() for earlier in questions}
            if question.casefold() not in known and len(question) <= _MAX_CHARS and len(question.split()) <= _MAX_WORDS:
                questions.append(question)
        return questions[:MAX_QUESTIONS]


def _from_heading(heading: str, text: str, language: str) -> Iterator[str]:
    if len(heading) < 3:
        return
    if heading.endswith("?"):
        yield _upper(heading if heading != heading.upper() else heading.capitalize())
    elif _QUESTION_START[language].fullmatch(heading):
        yield _upper(f"{heading}?")
    elif _is_code(heading):
        callable_name = (
            heading.partition("(")[0] if _CALL.fullmatch(heading) else heading if _CAMEL.fullmatch(heading) else ""
        )
        if callable_name:
            yield f"What does {callable_name} do?" if language == "en" else f"Wat doet {callable_name}?"
        else:
            yield f"What is {heading}?" if language == "en" else f"Wat is {heading}?"
    elif language == "en" and (match := _HOW_TO.fullmatch(heading) or _GERUND.fullmatch(heading)):
        verb = match[1].lower()
        if not _NO_OBJECT.search(match[2]):
            yield f"How do I {_GERUNDS.get(verb, verb)} {_YOUR.sub('my', match[2])}?"
    else:
        yield from _from_noun(heading, text, language)


def _is_code(heading: str) -> bool:
    """Whether a heading is a name from a program: a call, or one word with an underscore, an inner capital or inner
    dots.
    """
    if _CALL.fullmatch(heading):
        return True
    return bool(_NAME.fullmatch(heading)) and (
        "_" in heading.strip("_")
        or "::" in heading
        or bool(_CAMEL.fullmatch(heading))
        or bool(re.search(r"[a-z][A-Z]|[a-z]\.[a-z]", heading))
    )


def _from_noun(heading: str, text: str, language: str) -> Iterator[str]:
    words = heading.split()
    if len(words) > (3 if language == "en" else 1) or not all(word.replace("-", "").isalpha() for word in words):
        return
    if (
        any(word.lower() in _LINKING for word in words)
        or heading == heading.upper()
        or (len(words) > 2 and words[0].endswith("ing"))
    ):
        return
    # The capital of a heading goes, unless the word is a name or an abbreviation.
    named = [word[1:] != word[1:].lower() or _inside(word, text) for word in words]
    term = " ".join(word if is_name else word.lower() for word, is_name in zip(words, named, strict=True))
    if _PLURALS[language].fullmatch(words[-1]):
        yield f"What are the {term}?" if language == "en" else f"Wat zijn de {term}?"
    elif _SINGULARS[language].fullmatch(words[-1]):
        article = "the" if language == "en" else "het" if _DUTCH_NEUTER.fullmatch(words[-1]) else "de"
        yield f"What is the {term}?" if language == "en" else f"Wat is {article} {term}?"


def _from_definitions(text: str, language: str) -> Iterator[str]:
    """One question for each sentence among the first few that says what something is."""
    prose = "\n\n".join(
        paragraph
        for paragraph in _FENCE.sub("", text).split("\n\n")
        if not paragraph.lstrip().startswith(("#", "|", ">>>", ".."))
    )
    for sentence in _PROSE_BREAK.split(prose)[:8]:
        sentence = plain_title(sentence.strip())
        match = _DEFINITION[language].fullmatch(sentence)
        if not match or not sentence[0].isupper():
            continue
        words = match["term"].split()
        lowered = [word.lower() for word in words]
        if (
            any(word in _NO_TERM[language] or _MARKUP.search(word) or word[0].isdigit() for word in lowered)
            or len(match["term"]) < 3
        ):
            continue
        article = (match["article"] or "").lower()
        if match["verb"].lower() in ("are", "zijn") and article in ("a ", "an ", "een "):
            continue
        first = words[0] if article else _in_sentence(words[0], text)
        # A capital may only come from the start of the sentence, and what stands there need not be the subject.
        is_name = first != first.lower() and (first[1:] != first[1:].lower() or _inside(first, text))
        if (
            not article
            and first != first.lower()
            and not is_name
            and (language == "nl" or match["verb"].lower() == "are")
        ):
            continue
        term = " ".join([first, *words[1:]])
        ask = {"is": "What is", "are": "What are"} if language == "en" else {"is": "Wat is", "zijn": "Wat zijn"}
        yield f"{ask[match['verb'].lower()]} {article}{term}?"


def _in_sentence(word: str, text: str) -> str:
    """``word`` as it is written inside a sentence: without the capital of a heading unless it is a name."""
    if word[1:] != word[1:].lower() or _inside(word, text):
        return word
    lowered = word.lower()
    known = re.search(rf"\b{re.escape(lowered)}\b", text) or any(
        _PLURALS[language].fullmatch(lowered) or _SINGULARS[language].fullmatch(lowered) for language in _PLURALS
    )
    return lowered if known else word


def _inside(word: str, text: str) -> bool:
    """Whether ``text`` has ``word`` as it is written here, in the middle of a sentence."""
    return bool(re.search(rf"[a-z,] {re.escape(word)}\b", text))


def _upper(question: str) -> str:
    first = question.split()[0]
    return question if first[1:] != first[1:].lower() else question[0].upper() + question[1:]
