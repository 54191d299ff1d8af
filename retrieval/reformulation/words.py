"""The small words of English and Dutch that hold a question together. PURE.

Closed lists, not a grammar: what they do not know counts as content, so that a gap in them keeps words rather than
drops them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


def words(text: str) -> frozenset[str]:
    """The words of a text of nothing but words."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Lexicon:
    """One language. ``predicates`` end a yes-or-no question without being part of its subject ("is it *open*")."""

    name: str
    determiners: frozenset[str]
    demonstratives: frozenset[str]
    be: frozenset[str]
    auxiliaries: frozenset[str]
    pronouns: frozenset[str]
    question_words: frozenset[str]
    prepositions: frozenset[str]
    other: frozenset[str]
    verbs: frozenset[str]
    predicates: frozenset[str]
    attributes: re.Pattern[str]
    # The deictic nouns: "this year" names no earlier subject.
    here_and_now: frozenset[str]
    of: str

    @property
    def function_words(self) -> frozenset[str]:
        return (
            self.determiners
            | self.demonstratives
            | self.be
            | self.auxiliaries
            | self.pronouns
            | self.question_words
            | self.prepositions
            | self.other
        )


ENGLISH = Lexicon(
    name="en",
    determiners=words("a an the my your our any some no each every all both his her its their another"),
    demonstratives=words("this that these those"),
    be=words("is are was were be been being isn't aren't what's where's who's how's when's"),
    auxiliaries=words(
        """do does did don't doesn't didn't can could will would shall should must may might cannot can't won't has have
        had"""
    ),
    pronouns=words(
        """i you we he she it they me him us them one ones myself yourself itself themselves someone anyone everyone
        people something anything theirs"""
    ),
    question_words=words("what which who whom whose when where why how"),
    prepositions=words(
        """in on at by for with without from to into onto of about over under between during before after until since
        against through per near within outside inside above below across around via as than like behind despite
        while upon"""
    ),
    other=words(
        """and or but nor not if whether because so then also too still again now already ever never always often
        usually there here much many long far fast quickly more most less least very just only even yet well instead
        else up down out off away back today tomorrow yesterday please ago soon later once twice other same such own
        thanks thank hello hi hey ok okay great yes"""
    ),
    verbs=words(
        """cost costs weigh weighs last lasts take takes work works need needs require requires mean means happen
        happens open opens close closes start starts end ends begin begins contain contains include includes cover
        covers use used apply applies differ differs get gets give gives make makes made find go goes come comes know
        measure measures support supports run runs look looks expire expires pay belong belongs depend depends
        stop stops stand stands say says show shows called explain describe compare list define tell"""
    ),
    predicates=words(
        """open closed allowed available located situated required valid free included possible necessary mandatory safe
        needed permitted covered made used called built held based charged delivered ready expensive cheap big large
        heavy small long high fast tall wide deep old new different better important true correct"""
    ),
    attributes=re.compile(
        r"(?:prices?|costs?|weight|size|length|height|width|depth|hours|times?|address|number|name|date|purpose|meaning"
        r"|capital|definition|version|colou?r|age|speed|capacity|duration|temperature|director|author|ceo|head|founder"
        r"|maximum|minimum|amount|advantages?|disadvantages?|benefits?|requirements|use|role|phone|value|location"
        r"|functions?|effects?|symptoms|causes?|types?|kinds?|parts?|difference|differences|steps?|limits?)",
        re.I,
    ),
    here_and_now=words(
        "year week month day morning afternoon evening time site website page app moment days weekend case way"
    ),
    of="of",
)

DUTCH = Lexicon(
    name="nl",
    determiners=words("de het een mijn uw jouw onze ons hun elke elk alle iedere geen enkele sommige beide"),
    demonstratives=words("die dat deze dit"),
    be=words("is zijn was waren ben bent wordt worden werd geweest"),
    auxiliaries=words(
        """kan kun kunt kunnen kon zal zullen zult zou zouden moet moeten moest mag mogen mocht wil wilt willen heeft
        heb hebt hebben had doe doet doen deed ga gaat gaan"""
    ),
    pronouns=words(
        """ik je jij u wij we hij zij ze hem haar mij me hen jullie men iemand iets zich zichzelf er daar ervan daarvan
        ermee daarmee erin daarin erop daarop ervoor daarvoor erbij daarbij hiervan hiermee"""
    ),
    question_words=words(
        "wat welke welk wie wiens wanneer waar waarom hoe hoeveel waarmee waarvoor waaruit waarin waarop"
    ),
    prepositions=words(
        """in op aan bij voor met zonder van uit naar tot over onder tussen tijdens na sinds tegen door per binnen
        buiten boven langs rond via om te als dan volgens wegens ondanks achter naast vanaf behalve"""
    ),
    other=words(
        """en of maar noch niet wel ook nog al dus omdat zodat terwijl indien steeds altijd nooit vaak meestal hier
        veel lang ver snel meer meest minder minst zeer heel erg alleen zelfs eens even echt eigenlijk weer vandaag
        morgen gisteren toen nu straks later ooit
        bedankt dank dankjewel hallo hoi oké ja nee"""
    ),
    verbs=words(
        """kost kosten weegt wegen duurt duren werkt werken betekent betekenen nodig heet heten geldt gelden bevat
        bevatten begint beginnen eindigt krijg krijgt krijgen vind vindt vinden staat staan ligt liggen hoort horen
        gebruik gebruikt gebruiken neemt nemen komt komen maakt maken geeft geven sluit sluiten verloopt vervalt
        leg beschrijf vergelijk vertel vraag betaal betaalt betalen loopt verschilt gemaakt"""
    ),
    predicates=words(
        """open dicht gesloten toegestaan beschikbaar verplicht geldig gratis inbegrepen mogelijk noodzakelijk veilig
        gevestigd vereist klaar duur goedkoop groot zwaar klein lang hoog snel breed diep oud nieuw belangrijk anders
        beter waar waterdicht gemaakt bereikbaar"""
    ),
    attributes=re.compile(
        r"(?:prijs|prijzen|kosten|tarieven|tarief|gewicht|grootte|lengte|hoogte|breedte|(?<!\w)\w*(?:tijden|uren|adres|nummer)"
        r"|naam|datum"
        r"|doel|betekenis|hoofdstad|definitie|versie|kleur|leeftijd|snelheid|capaciteit|duur|temperatuur"
        r"|maximum|minimum|aantal|voordelen|nadelen|voorwaarden|vereisten|gebruik|rol|waarde|locatie|functie"
        r"|functies|effecten|symptomen|oorzaken|oorzaak|soorten|onderdelen|verschil|verschillen|stappen|limiet)",
        re.I,
    ),
    here_and_now=words(
        "jaar week maand dag ochtend middag avond keer site website pagina app moment dagen weekend manier geval"
    ),
    of="van",
)

LEXICONS = {"en": ENGLISH, "nl": DUTCH}
_ONLY = {
    name: lexicon.function_words - other.function_words
    for name, lexicon, other in (("en", ENGLISH, DUTCH), ("nl", DUTCH, ENGLISH))
}


def language_of(*texts: str) -> str:
    """``"en"`` or ``"nl"``, by the words that only one of the two has; empty when the first text that has any holds as
    many of both, or when none has any."""
    for text in texts:
        spoken = re.findall(r"[^\W\d_]+(?:['’]\w+)?", text.lower())
        hits = {name: sum(word in only for word in spoken) for name, only in _ONLY.items()}
        if hits["en"] != hits["nl"]:
            return max(hits, key=lambda name: hits[name])
    return ""
