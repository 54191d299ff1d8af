"""The words of the grammar, in English and Dutch, folded: small and without accents. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from retrieval.tables.words import stem


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


# Words that carry no meaning of their own in a question about a table.
STOP_WORDS = _words(
    """
    a an the this that these those there of in on at to for from by with into onto about as per via within among
    amongst across between and or nor but than then so is are was were be been being am do does did done has have
    had having can could would should will shall may might must i me my we us our you your he she it its they them
    their his her one ones all any each every some such same own only also just really actually currently now today
    overall altogether which what who whom whose when where how many much list listed lists show shows shown name
    names named give gives given tell find get gets got please could want know like need look looking see compare
    compared comparison versus vs difference different differ if not no none without zero exactly both either
    neither whether out up down off over available exist exists existing contain contains containing contained
    include includes including included belong belongs belonging fall falls falling concern hold holds come comes
    made make makes making use used uses using offer offers offered lie lies lay situated sell sells sold provide
    work works working thank thanks good morning afternoon hi hello dear s t d m re ll ve
    de het een dit dat deze die er van in op aan bij te tot voor uit naar door met om over onder tussen per als dan
    en of maar dus is zijn was waren wordt worden werd werden ben bent doe doet doen heeft hebben had hadden heb
    hebt kan kunnen kun mag moet moeten zal zullen zou zouden wil willen ik mij me mijn wij we ons onze jij je
    jullie u uw hij zij ze hun hen welke welk wat wie waar wanneer hoe hoeveel veel alle elk elke ieder iedere
    sommige geen niet zonder nul precies allebei lijst lijstje lijsten noem noemen naam namen geef geven geeft
    liggen ligt lig toon tonen zeg zeggen zoek zoeken weet weten graag alstublieft alsjeblieft bedankt dank alvast
    vergelijk vergelijken vergeleken verschil verschillen bevat bevatten behoort behoren hoort horen vallen valt
    staan staat bestaan bestaat komt komen gekomen laat begint gemaakt maken gebruikt verkoopt verkopen verkocht
    biedt bieden hallo goedemorgen goedemiddag ook nog wel toch eigenlijk totaal werkt werken
    """
)
# Nouns so general that they name neither a row nor a column.
SOFT_WORDS = _stems(
    """
    people person persons someone somebody anyone thing things amount number quantity value values level figure
    consumption data information table record records row rows entry entries item items total sort kind type win
    wins won part parts product products article articles
    mensen persoon personen iemand hoeveelheid aantal waarde niveau verbruik gegevens tabel rij rijen regel regels
    soort soorten onderdeel onderdelen producten artikel artikelen
    """
)
ROW_WORDS = _stems(
    "row rows entry entries item items record records part parts product products article articles"
    " rij rijen regel regels onderdeel onderdelen producten artikel artikelen"
)
ASKS_FOR_ROWS = _words("which what who list show name give welke welk wat wie lijst noem geef toon all alle")
ASKS_FOR_VALUES = _words("what which how when where wat welke welk hoe hoeveel wanneer waar")
NEGATIONS = _words("no not without none zero geen niet zonder nul never nooit")
COUNT_WORDS = (("how", "many"), ("number", "of"), ("count",), ("hoeveel",), ("aantal",))
SUM_WORDS = _words("sum total totals altogether combined totaal samen opgeteld som gezamenlijk")
MEAN_WORDS = _words("average mean avg gemiddeld gemiddelde")
COMPARE_WORDS = _words(
    "compare compared comparison versus vs difference differ vergelijk vergelijken vergeleken verschil"
)
ALTERNATIVES = _words("or of vs versus against tegen tegenover and en")


class Direction(IntEnum):
    LEAST = -1
    MOST = 1


@dataclass(frozen=True, slots=True)
class Extreme:
    """``concept`` names the columns it is about; empty: the column is named beside it. Of ``reversed_on`` columns (the
    year something was made, for "oldest"), the other end is meant.
    """

    direction: Direction
    concept: str
    reversed_on: frozenset[str] = frozenset()


_YEARS = _stems("year jaar founded built born birth geboren gebouwd opgericht since sinds start date datum birthday")
_RANKS = _stems("rank rang ranking position positie plaats place")


def _extremes() -> dict[str, Extreme]:
    rows = """
        price - cheaper cheapest goedkoper goedkoopst goedkoopste voordeliger voordeligst voordeligste
        price + dearest duurder duurst duurste priciest costliest pricier costlier
        weight + heavier heaviest zwaarder zwaarst zwaarste
        weight - lighter lightest lichter lichtst lichtste
        length + longer longest langer langst langste
        length - shorter shortest korter kortst kortste
        height + taller tallest
        size + larger largest bigger biggest groter grootst grootste
        size - smaller smallest kleiner kleinst kleinste
        age + older oldest ouder oudst oudste
        age - younger youngest newer newest jonger jongst jongste nieuwer nieuwst nieuwste
        speed + faster fastest quicker quickest sneller snelst snelste
        speed - slower slowest trager traagst traagste langzaamst langzaamste
        rating + better best beter beste favourite favorite favoriet favoriete
        rating - worse worst slechter slechtst slechtste
        wealth + richer richest rijker rijkst rijkste
        wealth - poorer poorest armer armst armste
        popular + populairder populairst populairste popularst
        warmth + hotter hottest warmer warmst warmste
        warmth - colder coldest kouder koudst koudste
        density + busier busiest drukker drukst drukste
        * + most more highest higher maximum max greatest greater top meest meeste meer hoogst hoogste hoger
        * - least fewest less fewer lowest lower minimum min minst minste minder laagst laagste lager
    """
    extremes = {}
    for row in rows.split("\n"):
        if not row.strip():
            continue
        concept, sign, *words = row.split()
        direction = Direction.MOST if sign == "+" else Direction.LEAST
        reversed_on = _YEARS if concept == "age" else _RANKS if concept in ("rating", "popular") else frozenset()
        for word in words:
            extremes[word] = Extreme(direction, "" if concept == "*" else concept, reversed_on)
    return extremes


EXTREMES = _extremes()
# Adjectives that take "most" or "least" before them, and the concept that they name.
ADJECTIVES = {
    word: concept
    for concept, words in {
        "price": "expensive cheap costly duur duurder goedkoop prijzig",
        "weight": "heavy light zwaar licht",
        "length": "long short lang kort",
        "height": "tall high hoog",
        "size": "big large small groot klein",
        "age": "old young new oud jong nieuw recent",
        "speed": "fast quick slow snel traag",
        "popular": "popular loved liked populair populaire geliefd geliefde gewild",
        "rating": "good bad goed slecht",
        "wealth": "rich poor wealthy rijk arm",
        "density": "populous populated crowded dicht dichtbevolkt",
        "warmth": "hot warm cold koud heet",
    }.items()
    for word in words.split()
}
# Comparisons with a number: the words before it.
COMPARATORS: tuple[tuple[tuple[str, ...], str], ...] = tuple(
    (tuple(words.split()), sign)
    for sign, rows in {
        ">": "more than|over|above|greater than|higher than|exceeding|exceed|exceeds|larger than|bigger than"
        "|meer dan|boven|hoger dan|groter dan|after|na",
        ">=": "at least|minimum of|from|minstens|ten minste|tenminste|vanaf|since|sinds|or more than",
        "<": "less than|under|below|fewer than|lower than|smaller than|minder dan|onder"
        "|lager dan|kleiner dan|before|voor",
        "<=": "at most|no more than|up to|maximum of|not more than|hoogstens|maximaal|ten hoogste|tot en met|until|tot",
        "=": "exactly|equal to|precies|gelijk aan",
    }.items()
    for words in rows.split("|")
)
GRAMMAR_WORDS = (
    STOP_WORDS
    | EXTREMES.keys()
    | ADJECTIVES.keys()
    | NEGATIONS
    | SUM_WORDS
    | MEAN_WORDS
    | COMPARE_WORDS
    | {word for words, _ in COMPARATORS for word in words}
)
