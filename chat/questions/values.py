"""The values that stand in a text: numbers, amounts, durations, dates, times, persons, places, contacts. PURE.

English and Dutch. What is found is what could be meant: a reader decides which one is. Precision is traded for recall,
because a value that is overlooked makes an answered question look unanswered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from chat.questions.types import ValueKind

_NUMBER = r"(?<![\w.,/-])[-+−]?\d{1,12}(?:[.,:]\d{1,6}){0,4}+"
_SMALL = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen"
    "|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?"
    "|half|twice|thrice|twee|drie|vier|vijf|zes|zeven|acht|negen|tien|elf|twaalf|dertien|veertien|vijftien|zestien"
    "|twintig|dertig|veertig|vijftig|zestig|zeventig|tachtig|negentig|honderd|duizend|miljoen|miljard|helft|halve"
)
_COUNTED = rf"(?:{_NUMBER}|\b(?:one|a|an|een|één|{_SMALL})\b)"
_UNIT = (
    r"%|percent\w*|procent|°\ ?[CF]?|degrees|graden|[kmcµ]?m[²³23]?|mm|k?g|mg|lbs?|pounds|tons?|tonnes?|ton|l|ml"
    r"|lit(?:re|er)s?"
    r"|bar|psi|k?Pa|k?W|MW|V|A|Hz|[kMG]?Hz|[KMGT]i?B|bytes|bits|px|times|keer|x|met(?:re|er)s?|kilomet(?:re|er)s?"
    r"|miles?|feet|foot"
    r"|inch(?:es)?|grams?|gram|kilo\w*|people|persons?|mensen|personen|points?|punten|acres|hectares?|square\ \w+"
    r"|kubieke\ \w+"
)
_TIME_UNIT = (
    r"(?:business\ |working\ |calendar\ )?(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|weekends?"
    r"|months?|years?|decades?"
    r"|centur(?:y|ies)|seconden?|minuten|minuut|uur|uren|(?:werk)?dag(?:en)?|nacht(?:en)?|weken|maand(?:en)?|jaar|jaren|eeuwen"
    r"|kwartaal|kwartier)"
)
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?"
    r"|Dec(?:ember)?|[Jj]anuari|[Ff]ebruari|[Mm]aart|[Aa]pril|[Mm]ei|[Jj]uni|[Jj]uli|[Aa]ugustus|[Ss]eptember"
    r"|[Oo]ktober"
    r"|[Nn]ovember|[Dd]ecember)"
)
_WEEKDAY = (
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|(?:maan|dins|woens|donder|vrij|zater"
    r"|zon)dag(?:en)?|weekends?|weekdays?)"
)
_CURRENCY = r"(?:dollars?|cents?|euros?|pounds?|pence|yen|francs?|kroner|USD|EUR|GBP|CHF|gulden|pond)"
_PRICED = r"(?:price|cost|fee|prijs|kosten|tarief|salary|salaris|wage|budget|eur|usd|gbp|amount|bedrag)"
_ROLE = (
    r"(?:manager|founder|director|lead|leader|officer|owner|employer|employee|colleague|mentor|supervisor|head"
    r"|chief|president"
    r"|chair(?:man|woman|person)?|secretary|treasurer|administrator|admin|engineer|developer|nurse|doctor"
    r"|physician|specialist"
    r"|surgeon|assistant|receptionist|dealer|supplier|customer|user|team|committee|board|department|union|council"
    r"|government"
    r"|parliament|commission|court|king|queen|emperor|minister|mayor|HR|CEO|CTO|CFO|COO|police|staff|partner"
    r"|representative"
    r"|leidinggevende|directeur|voorzitter|eigenaar|oprichter|medewerker|collega|verpleegkundige|arts|specialist"
    r"|huisarts"
    r"|chirurg|secretar\w+|beheerder|afdeling|bestuur|raad|commissie|regering|parlement|koning|koningin|keizer"
    r"|burgemeester"
    r"|politie|leverancier|klant|gebruiker|contactpersoon|werkgever|werknemer|klachtenfunctionaris|balie|receptie"
    r"|scribe|scouts?)"
)
_LOCATION = (
    r"(?:room|floor|building|office|hall|kitchen|street|road|avenue|desk|reception|entrance|car\ park|garage|city"
    r"|town|village"
    r"|country|state|region|province|county|district|island|river|valley|mountain|lake|sea|ocean|coast|border"
    r"|campus|station|airport"
    r"|museum|library|school|university|church|hospital|folder|directory|repository|repo|file|page|menu|tab"
    r"|section|panel|settings"
    r"|dashboard|console|drawer|cabinet|shelf|wall|north|south|east|west|centre|center|kamer|verdieping|gebouw"
    r"|kantoor|straat|weg"
    r"|balie|ingang|stad|dorp|land|provincie|regio|eiland|rivier|zee|kust|grens|museum|school|kerk|ziekenhuis"
    r"|afdeling|polikliniek"
    r"|map|bestand|pagina|instellingen|noorden|zuiden|oosten|westen|centrum|plein|hal|route\ \d+)s?"
)
_NAME = r"(?:[A-ZÀ-ÖØ-Þ]\.|\b[A-ZÀ-ÖØ-Þ][^\W\d_]*+(?:['’-][^\W\d_]++)?(?![\d-]))"

_PATTERNS: dict[ValueKind, re.Pattern[str]] = {
    ValueKind.NUMBER: re.compile(rf"{_NUMBER}(?: ?(?:{_UNIT})(?!\w))?|\b(?:{_SMALL})\b", re.IGNORECASE),
    ValueKind.AMOUNT: re.compile(
        rf"[€$£¥] ?\d++(?:[.,]\d++)*+(?: ?(?:k|m|bn|million|billion|miljoen|miljard)\b)?|{_NUMBER} ?(?:€|{_CURRENCY}\b)"
        rf"|{_NUMBER} (?:hundred|thousand|million|billion|miljoen|miljard)(?: {_CURRENCY}\b)?"
        rf"|\b(?:{_SMALL}) {_CURRENCY}\b|\b(?:EUR|USD|GBP|US\$|CHF) ?\d++(?:[.,]\d++)*+"
        rf"|(?<![\d.,])\d++(?:[.,]\d++)*+k\b"
        rf"|(?<=[_\W])(?:\w{{0,20}}_)?{_PRICED}(?:_\w{{1,20}})?\s?[:|=] ?[€$£]?\d++(?:[.,]\d++)*+"
        rf"|\b(?:free(?: of charge)?|gratis|kosteloos|no (?:cost|charge|fee))\b",
        re.IGNORECASE,
    ),
    ValueKind.DURATION: re.compile(
        rf"{_COUNTED}(?:[ -](?:to|or|tot|of|à|and a half|–|full|whole|consecutive)[ -]{_COUNTED})?[ -]?{_TIME_UNIT}\b"
        rf"|(?<![\d-])\d{{1,4}}[-–]\d{{1,4}}[ -]?{_TIME_UNIT}\b"
        r"|\b(?:hourly|daily|weekly|bi-?weekly|fortnightly|monthly|quarterly|yearly|annual(?:ly)?|biannual\w*"
        r"|continuous\w*|permanent\w*"
        r"|dagelijks\w*|wekelijks\w*|maandelijks\w*|jaarlijks\w*|immediately|forever|always|never|rarely|often"
        r"|altijd|nooit|zelden|indefinite\w*|unlimited|onmiddellijk|direct)\b"
        rf"|\b(?:every|each|per|elke?|ieder[e]?|once|twice|within|binnen)(?: (?:a|an|the|een|other"
        rf"|\w{{2,8}}))?[ -]{_TIME_UNIT}\b"
        rf"|\b(?:several|a few|few|some|many|enkele|een paar|meerdere) {_TIME_UNIT}\b|\b(?:every|each"
        rf"|elke?) {_WEEKDAY}\b",
        re.IGNORECASE,
    ),
    ValueKind.DATE: re.compile(
        rf"\b\d{{1,2}}(?:st|nd|rd|th|e)?(?: of)? {_MONTH}(?:,? \d{{4}})?\b|\b{_MONTH}(?: \d{{1,2}}(?:st|nd|rd"
        rf"|th)?\b)?(?:,? \d{{4}})?\b"
        r"|\b\d{4}-\d\d?-\d\d?\b|\b\d\d?[/.-]\d\d?[/.-]\d{2,4}\b|(?<![\d.,])(?:1\d|2[01])\d\ds?\b(?![.,]\d)"
        r"|\b\d{1,2}(?:st|nd|rd|th|e|ste|de)[ -](?:century|centuries|eeuw)\b|\b(?:\w{2,10}th|first|second|third"
        r"|\w{3,10}e) (?:century|eeuw)\b"
        r"|\b\d{1,4} ?(?:BCE?|AD|CE|v\.\ ?Chr)\b|\b\d+(?:\.\d+)? (?:million )?years ago\b"
        rf"|\b{_WEEKDAY}\b|\b(?:today|tomorrow|yesterday|vandaag|morgen|gisteren|day one|spring|summer|autumn"
        rf"|winter|lente|zomer|herfst)\b"
    ),
    ValueKind.TIME: re.compile(
        r"(?<![\d.,:])\d{1,2}[:.]\d\d(?: ?(?:[ap]\.?m\b\.?|uur|h\b))?(?![\d%])|\b\d{1,2} ?(?:[ap]\.?m\b|uur\b"
        r"|o'?clock)"
        rf"|\b(?:at|until|till|from|om|tot|vanaf) (?!half\b)(?:{_SMALL}|one|één)\b"
        r"|\b(?:noon|midnight|midday|middernacht)\b"
        rf"|\b(?:half|quarter|kwart) (?:past|to|voor|over|{_SMALL}|one|een|één)\b",
        re.IGNORECASE,
    ),
    ValueKind.CONTACT: re.compile(
        r"(?<![\w@.])[\w.+-]{1,64}+@[\w-]{1,64}+(?:\.[\w-]{1,24}+){1,4}|\bhttps?://[^\s)>\]]++|\bwww\.[^\s)>\]]++"
        r"|(?<![\w.,-])(?:\+|\(0|0)\d[\d ()/-]{5,18}\d(?![\w-])|\b\d{3}[ -]\d{3}[ -]\d{4}\b|\bext(?:ension"
        r"|\.)? ?\d{2,6}\b"
        r"|(?<!\w)#[a-z][\w-]{2,60}+|(?<![\w@.])@[a-z][\w-]{2,40}+|\b\d{4} ?[A-Z]{2}\b"
        r"|\b(?:tel(?:ephone|efoon)?|phone|call|dial|bel)\b[^\d\n]{0,30}\d{3,}"
        r"|\b[A-Z][\w-]{2,30}(?:straat|weg|laan|plein|kade)? (?:Street|Road|Avenue|Lane|Square)\b"
        r"|\b[A-Z]\w{2,30}(?:straat|weg|laan|plein|kade) \d+",
    ),
    ValueKind.PLACE: re.compile(
        rf"\b(?:in|at|on|near|to|from|into|through|across|between|of|around|outside|inside|op|te|bij|naar|uit"
        rf"|naast|van|tussen|door)"
        rf" (?:the |de |het |our |your |a |een )?(?:\w{{2,20}} )?(?:{_NAME}|{_LOCATION}\b)|\b{_LOCATION}\b"
        r"|(?<![\w/])/?[\w.-]{1,60}+/[\w./-]{1,120}+|\bhttps?://[^\s)>\]]++|`[^`\n]{2,120}`",
    ),
}  # fmt: skip
_ROLES = re.compile(rf"\b(?:{_ROLE})s?\b", re.IGNORECASE)
# What stands before a name, and tells one even where it begins a sentence.
_TITLE = r"(?<!\w)(?:[Dd]rs?|[Pp]rof|[Mm]r|Mrs|Ms|[Ii]r|[Ii]ng|[Dd]hr|[Mm]evr|[Mm]w)\.? "
_NAMES = re.compile(
    rf"(?:(?:{_TITLE}){{1,3}}(?:(?:van|von|de|der|den|ten|ter|el|al) ){{0,2}})?"
    rf"{_NAME}(?: (?:(?:van|von|de|der|den|la|le|bin|of|the|ten|ter) ){{0,2}}{_NAME}){{0,4}}"
)
_BEFORE_SENTENCE = ".!?:;|•*#>\n-"
# Words that begin a sentence, or are written with a capital letter without being a name.
_NOT_NAMES = frozenset(
    """
    The A An This That These Those It He She They We You I In On At By For From To With As If When While After Before
    Since Although Because However But And Or Not No There Here Each Every All Any Some Many Most Both One Two Three
    What Which Who Where Why How Its His Her Their Our Your My During Until Under Over Between Among Through Per
    De Het Een Dit Dat Deze Die Er Hij Zij Ze We Wij Je Jij U Ik In Op Aan Bij Voor Van Naar Met Als Toen Terwijl Na
    Omdat Maar En Of Niet Geen Hier Daar Elk Elke Alle Sommige Veel Wat Welke Wie Waar Waarom Hoe Zijn Haar Hun Ons Onze
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September
    October November December English Dutch French German Spanish Engels Nederlands
    """.split()  # noqa: SIM905
)


def find_values(text: str, kind: ValueKind) -> list[tuple[int, int]]:
    """Start and end of each value of this kind in ``text``, in order, without overlaps."""
    if kind is ValueKind.PERSON:
        return _without_overlaps(sorted([*_find_names(text), *(match.span() for match in _ROLES.finditer(text))]))
    if kind is ValueKind.PLACE:
        places = (match.span() for match in _PATTERNS[kind].finditer(text))
        return _without_overlaps(sorted([*_find_names(text), *places]))
    return [match.span() for match in _PATTERNS[kind].finditer(text)]


def _find_names(text: str) -> Iterator[tuple[int, int]]:
    for match in _NAMES.finditer(text):
        start, end = match.span()
        words = match.group().split()
        while words and words[0].strip(".'’") in _NOT_NAMES:
            start += len(words[0]) + 1
            words = words[1:]
        if not words:
            continue
        # A single word that begins a sentence is likely to be no name.
        before = text[max(0, start - 12) : start].rstrip(" \t\"'“‘(*_")
        if len(words) == 1 and start == match.start() and (not before or before[-1] in _BEFORE_SENTENCE):
            continue
        if len(words[0].strip(".'’")) > 1 or len(words) > 1:
            yield start, end


def _without_overlaps(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, end in spans:
        if kept and start < kept[-1][1]:
            continue
        kept.append((start, end))
    return kept
