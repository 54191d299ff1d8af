"""The English and Dutch words of questions about tables, and the comparison of words with columns and cells. PURE."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

_NUMBER = r"\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?(?![\d\w])|\d+[.,]\d+(?![\d\w])"
_TOKEN = re.compile(rf"{_NUMBER}|[^\W_]+|[%€$£<>=]")
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z]{3})(?=\d)")
_TWICE = re.compile(r"([a-z])\1")
YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_UNITS_LAST = frozenset("g kg mg mm cm m km km2 m2 l ml eur usd gbp bar min kw w v".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class QuestionToken:
    """A token ``question[start:end]``; ``norm`` is folded."""

    start: int
    end: int
    norm: str


def fold(text: str) -> str:
    """Return the text in lower case without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def squeeze(text: str) -> str:
    """Return the folded letters and digits: the same for MX-9920-W, mx 9920 w and MX9920W."""
    return "".join(_WORD.findall(fold(text)))


@functools.lru_cache(maxsize=20_000)
def singular(word: str) -> str:
    """Return one form for singular and plural of a folded English or Dutch noun; not always a word."""
    if not word.isalpha() or len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    elif word.endswith("en") and len(word) > 5:
        # The plural of "prijs" is "prijzen".
        word = word[:-2]
        word = word[:-1] + {"z": "s", "v": "f"}.get(word[-1], word[-1])
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]  # The plural of "gemeente" is "gemeenten".
    # The plural of "naam" is "namen".
    return _TWICE.sub(r"\1", word)


_ABBREVIATED = re.compile(r"[A-Z]{2}")


@functools.lru_cache(maxsize=20_000)
def key_of(text: str) -> str:
    """Return a key that spellings share: MX-9920-W and mx 9920 w; pump and pumps."""
    norms = [token.norm for token in tokenize(text)]
    return "".join([*norms[:-1], singular(norms[-1])]) if norms else ""


def tokenize(question: str) -> list[QuestionToken]:
    return [QuestionToken(match.start(), match.end(), fold(match.group())) for match in _TOKEN.finditer(question)]


@functools.lru_cache(maxsize=5_000)
def words_of_name(name: str) -> tuple[str, ...]:
    """Return the folded words of a column's name: ``max_pressure_bar`` and ``unitPrice`` are split."""
    return tuple(fold(piece) for part in _WORD.findall(name) for piece in _CAMEL.split(part))


def terms_of(caption: str, columns: Iterable[str]) -> list[str]:
    words = [token.norm for token in tokenize(caption)]
    return list(dict.fromkeys(map(singular, [*words, *(word for name in columns for word in words_of_name(name))])))


def show_name(name: str) -> str:
    """Return a column's name for readers: "max pressure" for ``max_pressure_bar``; RPM and WebDAV stay."""
    name = name.strip()
    if " " in name or (name[:1].isupper() and "_" not in name and (name[1:].islower() or _ABBREVIATED.search(name))):
        return name
    words = list(words_of_name(name))
    if len(words) > 1 and words[-1] in _UNITS_LAST:
        words = words[:-1]
    return " ".join(words) or name


def label_of(name: str) -> str:
    """Return a column's name with its unit: "weight (g)" for ``weight_g``."""
    shown, words = show_name(name), words_of_name(name)
    is_cut = shown != name.strip() and len(words) > 1 and words[-1] in _UNITS_LAST
    return f"{shown} ({words[-1]})" if is_cut else shown


class Word(Enum):
    """The function of a word or phrase in a question."""

    COUNT = auto()
    TOTAL_COUNT = auto()
    TOTAL = auto()
    MEAN = auto()
    MOST = auto()
    LEAST = auto()
    # These rank days and years.
    LATEST = auto()
    EARLIEST = auto()
    MORE = auto()
    LESS = auto()
    DISTINCT = auto()
    ONLY = auto()
    NOT = auto()
    AND = auto()
    OR = auto()
    ABOVE = auto()
    BELOW = auto()
    AT_LEAST = auto()
    AT_MOST = auto()
    # These compare years.
    AFTER = auto()
    BEFORE = auto()
    SINCE = auto()
    UNTIL = auto()
    BETWEEN = auto()
    # These follow the number.
    OR_MORE = auto()
    OR_LESS = auto()
    WHICH = auto()
    WHO = auto()
    WHEN = auto()
    WHERE = auto()
    HOW = auto()
    LIST = auto()
    TIMES = auto()
    # Words of the table's caption mean its rows.
    ROWS = auto()
    FILLER = auto()


ENGLISH: Mapping[Word, str] = {
    Word.COUNT: "how many|number of|amount of|count of|count|quantity of",
    Word.TOTAL_COUNT: "total number of|total amount of|how many total|how many in total",
    Word.TOTAL: "total|in total|sum of|sum|combined|altogether",
    Word.MEAN: "average|mean|avg|average number of|mean number of",
    Word.MOST: "most|highest|largest|greatest|maximum|max|biggest|top",
    Word.LEAST: "least|fewest|lowest|smallest|minimum|min",
    Word.LATEST: "last|latest|newest|most recent",
    Word.EARLIEST: "first|earliest",
    Word.MORE: "more|higher|larger|greater|bigger",
    Word.LESS: "less|fewer|lower|smaller",
    Word.DISTINCT: "different|distinct|unique",
    Word.ONLY: "only",
    Word.NOT: "not|no|without|never|except|besides|excluding|other than|aside from|apart from|didn|doesn|isn|wasn|weren"
    "|don|hasn|haven|aren",
    Word.AND: "and|but|as well as|both",
    Word.OR: "or|versus|vs",
    Word.ABOVE: "more than|over|above|greater than|higher than|larger than|exceeding|bigger than",
    Word.BELOW: "less than|under|below|fewer than|lower than|smaller than",
    Word.AT_LEAST: "at least|no less than|no fewer than|minimum of|a minimum of",
    Word.AT_MOST: "at most|no more than|not more than|up to|maximum of|a maximum of",
    Word.AFTER: "after",
    Word.BEFORE: "before|prior to",
    Word.SINCE: "since",
    Word.UNTIL: "until",
    Word.BETWEEN: "between",
    Word.OR_MORE: "or more|or higher|or above|or over",
    Word.OR_LESS: "or less|or fewer|or lower|or below|or under",
    Word.WHICH: "which|what|whats|whose",
    Word.WHO: "who|whom",
    Word.WHEN: "when",
    Word.WHERE: "where",
    Word.HOW: "how|how much",
    Word.LIST: "list|name|show|give|tell me|show me|give me|list all|compare",
    Word.TIMES: "how many times|number of times|total number of times|amount of times",
    Word.ROWS: "rows|row|entries|items",
    Word.FILLER: "a|an|the|of|in|on|at|to|for|from|by|with|is|are|was|were|be|been|do|does|did|have|has|had|having"
    "|there|this|that|these|those|its|their|his|her|he|she|they|it|any|all|listed|in the list|on the list|in the table"
    "|on the table|in this table|on this list|in this list|on the chart|in the chart|shown|please|could you|can you"
    "|would you|s|t|me|you|we|i|get|got|gets|receive|received|contain|contains|exactly|than|how is|where the"
    "|who is|who are|who have|who had|which have|which had|with a|can|value of|values of|value|tell|know|among|per cent"
    "|percent|as|dear|hello|hi|thanks|at all|belong to|belongs to|tell me which|tell me what|tell me who|tell me how",
}
DUTCH: Mapping[Word, str] = {
    Word.COUNT: "hoeveel|aantal|het aantal",
    Word.TOTAL_COUNT: "totale aantal|totaal aantal|het totale aantal",
    Word.TOTAL: "totaal|in totaal|totale|samen|opgeteld|som",
    Word.MEAN: "gemiddeld|gemiddelde",
    Word.MOST: "meest|meeste|hoogst|hoogste|grootst|grootste|maximaal|maximale|maximum|max",
    Word.LEAST: "minst|minste|laagst|laagste|kleinst|kleinste|minimaal|minimale|minimum|min",
    Word.LATEST: "laatst|laatste|nieuwste|meest recente",
    Word.EARLIEST: "eerst|eerste|vroegste",
    Word.MORE: "meer|hoger|groter",
    Word.LESS: "minder|lager|kleiner",
    Word.DISTINCT: "verschillende",
    Word.ONLY: "enige|alleen",
    Word.NOT: "niet|geen|zonder|nooit|behalve|anders dan",
    Word.AND: "en|maar|zowel|als",
    Word.OR: "of",
    Word.ABOVE: "meer dan|boven|hoger dan|groter dan",
    Word.BELOW: "minder dan|onder|lager dan|kleiner dan",
    Word.AT_LEAST: "minstens|ten minste|tenminste|minimaal",
    Word.AT_MOST: "hoogstens|ten hoogste|maximaal|niet meer dan",
    Word.AFTER: "na",
    Word.BEFORE: "voor",
    Word.SINCE: "sinds|vanaf",
    Word.UNTIL: "tot en met",
    Word.BETWEEN: "tussen",
    Word.OR_MORE: "of meer|of hoger",
    Word.OR_LESS: "of minder|of lager",
    Word.WHICH: "welke|welk|wat",
    Word.WHO: "wie",
    Word.WHEN: "wanneer",
    Word.WHERE: "waar",
    Word.HOW: "hoe",
    Word.LIST: "noem|geef|toon|lijst van|vergelijk",
    Word.TIMES: "hoeveel keer|hoe vaak|aantal keer|aantal keren",
    Word.ROWS: "rijen|regels",
    Word.FILLER: "de|het|een|van|in|op|aan|bij|te|uit|naar|met|om|is|zijn|was|waren|wordt|worden|heeft|hebben|had"
    "|hadden|er|die|dat|deze|dit|hun|alle|in de lijst|in de tabel|kunt u|kun je|mij|me|graag|alstublieft|bevat"
    "|bevatten|staan|staat|ligt|liggen|precies|dan|u|je|ik|we",
}


def _nouns(words: str) -> frozenset[str]:
    return frozenset(singular(word) for word in words.split())


@dataclass(frozen=True, slots=True)
class Concept:
    """A quantity that everyday words name.

    ``columns`` are words of column names. ``phrases`` map to None ("how heavy") or an extreme ("heaviest").
    """

    columns: frozenset[str]
    phrases: Mapping[str, Word | None]


def _concept(
    columns: str, degrees: str, most: str, least: str, compared: str = "", *, more: str = "", less: str = ""
) -> Concept:
    """Return a concept from words separated by blanks.

    ``compared`` are adjectives after words such as "most" and "less"; ``more`` and ``less`` are comparatives.
    """
    phrases: dict[str, Word | None] = dict.fromkeys(degrees.split())
    phrases |= dict.fromkeys(most.split(), Word.MOST) | dict.fromkeys(least.split(), Word.LEAST)
    phrases |= dict.fromkeys(more.split(), Word.MORE) | dict.fromkeys(less.split(), Word.LESS)
    if compared:
        phrases |= {f"{word.name.lower()} {compared}": word for word in (Word.MOST, Word.LEAST, Word.MORE, Word.LESS)}
    return Concept(_nouns(columns), phrases)


CONCEPTS: tuple[Concept, ...] = (
    _concept(
        "price cost prijs kosten",
        "cost costs price expensive kost kosten prijs duur",
        "dearest duurste",
        "cheapest goedkoopste",
        "expensive",
        more="dearer duurder",
        less="cheaper goedkoper",
    ),
    _concept(
        "weight gewicht",
        "heavy weigh weighs weighed weight zwaar weegt wegen gewicht",
        "heaviest zwaarste",
        "lightest lichtste",
        more="heavier zwaarder",
        less="lighter lichter",
    ),
    _concept("length lengte", "long lang", "longest langste", "shortest kortste", more="longer langer"),
    _concept("height hoogte", "tall high hoog", "tallest", "", more="taller"),
    _concept("age leeftijd", "old oud", "oldest oudste", "youngest jongste", more="older ouder", less="younger jonger"),
    _concept("speed snelheid", "fast snel", "fastest snelste", "slowest langzaamste", more="faster sneller"),
    _concept("salary wage salaris loon", "earn earns earned salary verdient verdienen", "", ""),
)
# These verbs and objects mean "has": "won three gold medals" is "has three gold".
VERBS = frozenset(
    """
    win won wins awarded earn earned medal medals metal metals award awards score scored scores play played plays
    """.split()  # noqa: SIM905
)
# Columns with these names answer who, when and where; the first set that names exactly one column counts.
WHO_COLUMNS = (
    _nouns(
        """
        name player driver athlete winner champion manager coach captain director rider artist author president member
        candidate actor performer person employee swimmer skater pilot jockey wrestler opponent contestant nominee judge
        naam speler winnaar burgemeester medewerker
        """
    ),
    _nouns("team country nation club land ploeg"),
)
WHEN_COLUMNS = _nouns("date year season datum jaar seizoen")
WHERE_COLUMNS = _nouns("location venue place city site stadium locatie plaats stad")
# Numbers in these columns rank or name: they are not summed, and their highest is not the largest.
ORDINALS = _nouns(
    "rank ranking position pos place plaats finish standing overall peak chart pick grid lane division tier level class"
    " grade no number nummer nr id seed round ronde week"
)
# Rows with these cells sum up other rows.
SUMMARIES = frozenset(
    "total totals average averages sum overall mean career grandtotal careertotal totaal gemiddelde gemiddeld".split()  # noqa: SIM905
)
YES_OR_NO = frozenset(
    """
    is are was were do does did has have had can could will would should may kan mag is zijn was waren heeft hebben had
    doet deed
    """.split()  # noqa: SIM905
)
NUMBERS: Mapping[str, float] = {
    word: float(number)
    for names in (
        "zero one two three four five six seven eight nine ten eleven twelve",
        "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf",
    )
    for number, word in enumerate(names.split())
    if word != "een"
}
SCALES: Mapping[str, float] = {"thousand": 1e3, "duizend": 1e3, "million": 1e6, "miljoen": 1e6, "billion": 1e9}


def _phrases(words: Mapping[Word, str]) -> dict[tuple[str, ...], Word]:
    phrases = {tuple(phrase.split()): word for word, row in words.items() for phrase in row.split("|")}
    extremes = {phrase: word for phrase, word in phrases.items() if word in (Word.MOST, Word.LEAST)}
    # An example is "the largest number of".
    return phrases | {(*phrase, noun, "of"): extremes[phrase] for phrase in extremes for noun in ("number", "amount")}


_PHRASES = {"en": _phrases(ENGLISH), "nl": _phrases(DUTCH)}
_ALONE = {language: {phrase[0] for phrase in known if len(phrase) == 1} for language, known in _PHRASES.items()}
# These join the words of a column's name: "Date of birth" is also asked for as "birth date".
JOINING = frozenset("a an the of in and de het een van en".split())  # noqa: SIM905
GRAMMAR_WORDS = frozenset(_ALONE["en"] | _ALONE["nl"])


def phrases_for(words: Iterable[str]) -> Mapping[tuple[str, ...], Word]:
    """Return the phrases of the language that has more of the words; English if unclear."""
    found = set(words)
    dutch = len(found & (_ALONE["nl"] - _ALONE["en"]))
    return _PHRASES["nl" if dutch > len(found & (_ALONE["en"] - _ALONE["nl"])) else "en"]
