"""The words of a question, and the small words of English and Dutch that hold one together. PURE."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r'"[^"]+"|“[^”]{1,300}”|«[^»]{1,300}»|`[^`]+`'  # a quotation or code is one token, whatever it holds
    r"|(?<!\S)--\w+(?:[-.=]\w+)*"
    r"|(?:(?<!\S)[-+])?\w+(?:(?:::|[-./#'’_])\w+)*(?:\(\))?[+#]*"
    r"|[^\w\s]"
)


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


def tokens_of(question: str) -> list[Token]:
    return [Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(question)]


def words(text: str) -> frozenset[str]:
    """The words of a text of nothing but words."""
    return frozenset(text.split())


# Closed lists: a word that is missing here counts as content.
SMALL_WORDS = {
    "en": words(
        """a an the my your our any some no each every all both his her its their another this that these those is are
        was were be been being isn't aren't what's where's who's how's when's do does did don't doesn't didn't can
        could will would shall should must may might cannot can't won't has have had i you we he she it they me him us
        them one ones myself yourself itself themselves someone anyone everyone people something anything theirs what
        which who whom whose when where why how in on at by for with without from to into onto of about over under
        between during before after until since against through per near within outside inside above below across
        around via as than like behind despite while upon and or but nor not if whether because so then also too still
        again now already ever never always often usually there here much many long far fast quickly more most less
        least very just only even yet well instead else up down out off away back today tomorrow yesterday please ago
        soon later once twice other same such own thanks thank hello hi hey ok okay great yes"""
    ),
    "nl": words(
        """de het een mijn uw jouw onze ons hun elke elk alle iedere geen enkele sommige beide die dat deze dit is zijn
        was waren ben bent wordt worden werd geweest kan kun kunt kunnen kon zal zullen zult zou zouden moet moeten
        moest mag mogen mocht wil wilt willen heeft heb hebt hebben had doe doet doen deed ga gaat gaan ik je jij u
        wij we hij zij ze hem haar mij me hen jullie men iemand iets zich zichzelf er daar ervan daarvan ermee daarmee
        erin daarin erop daarop ervoor daarvoor erbij daarbij hiervan hiermee wat welke welk wie wiens wanneer waar
        waarom hoe hoeveel waarmee waarvoor waaruit waarin waarop in op aan bij voor met zonder van uit naar tot over
        onder tussen tijdens na sinds tegen door per binnen buiten boven langs rond via om te als dan volgens wegens
        ondanks achter naast vanaf behalve en of maar noch niet wel ook nog al dus omdat zodat terwijl indien steeds
        altijd nooit vaak meestal hier veel lang ver snel meer meest minder minst zeer heel erg alleen zelfs eens even
        echt eigenlijk weer vandaag morgen gisteren toen nu straks later ooit bedankt dank dankjewel hallo hoi oké ja
        nee"""
    ),
}
_ONLY = {"en": SMALL_WORDS["en"] - SMALL_WORDS["nl"], "nl": SMALL_WORDS["nl"] - SMALL_WORDS["en"]}


def language_of(*texts: str) -> str:
    """``"en"`` or ``"nl"``, by the words that only one of the two has; empty when the first text that has any holds as
    many of both, or when none has any."""
    for text in texts:
        spoken = re.findall(r"[^\W\d_]+(?:['’]\w+)?", text.lower())
        hits = {name: sum(word in only for word in spoken) for name, only in _ONLY.items()}
        if hits["en"] != hits["nl"]:
            return max(hits, key=lambda name: hits[name])
    return ""
