"""The kind of the value that a question asks for, told by its wording. PURE."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chat.questions.types import ValueKind
from chat.questions.wording import WH, verbose_pattern

TIME_UNIT = (
    r"(?:seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|seconden?|minuten|minuut|uur|uren"
    r"|dag(?:en)?|nacht(?:en)?|weken|week|maand(?:en)?|jaar|jaren)"
)
_ROLE = (
    r"(?:person|man|woman|president|king|queen|emperor|actor|actress|author|writer|scientist|player|artist|singer"
    r"|director|leader"
    r"|minister|mayor|quarterback|coach|architect|inventor|philosopher|mathematician|physicist|chemist|economist"
    r"|historian|professor"
    r"|pope|explorer|astronomer|scholar|poet|painter|composer|engineer|figure|founder|owner|manager|chair|ceo"
    r"|head|persoon|koning"
    r"|producer|editor|captain|commander|drummer|guitarist|speler|schrijver|wetenschapper|leider|acteur"
    r"|voorzitter|directeur|baas|arts|burgemeester|leidinggevende)s?\b"
)
# What the question word says of the value; then, for what and which, the noun that is asked for ("what city", "the
# price of"). The first hit counts: the more specific come first.
_MASS = r"weigh|drink|eat|use|consume|contain|hold|pump|grow|rise|increase|vary|differ|weegt|drink"
_BY_QUESTION_WORD: Sequence[tuple[ValueKind, re.Pattern[str]]] = [
    (ValueKind.CONTACT, verbose_pattern(
        r"^how\ (?:can|do|should)\ (?:i|we)\ (?:contact|reach|call|e-?mail|phone)\b | ^hoe\ (?:kan\ ik"
        r"|bereik)\b.*\b(?:bereik\w*|contact)")),
    (ValueKind.TIME, verbose_pattern(
        r"^(?:hoe|hwo)\ laat\b | ^between\ what\b | ^what\ (?:times?|hours)\b | ^welke?\ tijd\w*")),
    (ValueKind.DURATION, verbose_pattern(
        rf"^(?:how|hwo)\ (?:quick(?:ly)?|soon|often|frequent(?:ly)?|regular(?:ly)?)\b | ^hoe\ (?:lang|vaak|snel"
        rf"|dikwijls)\b"
        rf"| ^(?:how\ man?ny?|hoeveel)\ (?:\w+\ )?{TIME_UNIT}\b | ^how\ much\ (?:\w+\ )?(?:time|notice)\b "
        rf"| ^hoeveel\ tijd\b"
        r"| ^how\ far\ (?:in\ advance|ahead)\b | \b(?:within|binnen)\ (?:what|which|welke?|hoeveel)\b"
        r"| ^how\ long\b(?!.*\b(?:password|name|title|pipe|cable|hose|message|field|river|bridge|wall|road"
        r"|summary|text)\b)")),
    (ValueKind.DATE, verbose_pattern(
        # "When must I call?" asks for an occasion.
        r"^when\b(?!\ (?:should|must)\ (?:i|you|we)\b) | ^wanneer\b(?!\ moet(?:en)?\ (?:ik|je|u|we|wij)\b)"
        r"| ^whens\b | \b(?:since|until|till|by|sinds|tot)\ (?:when|wanneer)\b | \b(?:when|wanneer)$")),
    (ValueKind.AMOUNT, verbose_pattern(
        rf"^how\ mu?t?ch\ (?:is|are|was|were|do|does|did|will|would|can|could|should|must|has"
        rf"|have)\b(?!.*\b(?:{_MASS})\w*\b)"
        r"| ^how\ (?:much|many)\ (?:\w+\ )?(?:dollars|euros|pounds|money|capital|funding|funds)\b | ^how\ expensive\b"
        r"| ^how\ mu?t?ch\b.*\b(?:cost|pay|paid|earn|spend|charge|reimburse)\w*\b | ^hoe\ duur\b"
        r"| ^hoeveel\ (?:kost\w*|geld|betaal\w*|krijg\w*|euro|bedraagt|is)\b | ^wat\ (?:kost|kosten|betaal\w*)\b"
        r"| ^hoeveel\ .*\b(?:kosten|betalen|verdien\w*|vergoed\w*)\b | ^(?:what|wat)\b.*\b(?:costs?|kost|kosten)$")),
    (ValueKind.NUMBER, verbose_pattern(
        r"^(?:how|hwo)\ (?:man?ny?|mut?ch|heavy|havy|big|large|small|tall|high|deep|wide|long|old|far|fast|hot"
        r"|cold|warm|loud|strong"
        r"  |thick|accurate)\b | ^hoeveel\b | ^hoe\ (?:zwaar|groot|klein|hoog|diep|breed|oud|ver|warm|koud|dik"
        r"|sterk)\b")),
    (ValueKind.PERSON, verbose_pattern(
        r"^(?:who(?:'?s|m|se)?|wie|wiens)\b | ^hoe\ heet(?:te)?\ (?:de|het|mijn|onze|je|uw)\ \w*" + _ROLE)),
    (ValueKind.PLACE, verbose_pattern(r"^where(?!by|as)(?:'?s)?\b | ^waar(?:heen|vandaan)?\b | \b(?:where|waar)$")),
]  # fmt: skip
_OF = r"(?=\ (?:of|for|in|at|on|do|does|that|be|per|is|was|van|voor|bij)\b|\W*$)"
_BY_NOUN: Sequence[tuple[ValueKind, re.Pattern[str]]] = [
    (ValueKind.CONTACT, verbose_pattern(
        r"\b(?:(?:tele)?phone|fax|mobile)\ ?numbers?\b | \b(?:e-?mail|mail|web|postal|ip|post)[ -]?(?:address"
        r"|adres)\w*\b"
        r"| \btelefoonnummer\w*\b | \b(?:url|hotline|helpline)\b | \bwhich\ number\b.*\b(?:call|ring|dial|phone)\b"
        r"| ^(?:what|which)\ (?:is\ the\ )?(?:address|website|e-?mail|number\ (?:do|can|should|to))\b "
        r"| ^welk\ (?:nummer|e-?mail|adres)\b"
        r"| \bcontact\ (?:details|information|info)\b | \bcontactgegevens\b | ^(?:phone|address|adres|telefoon)\b")),
    (ValueKind.TIME, verbose_pattern(
        r"\b(?:opening|visiting|office|business|working|closing)\ (?:hours|times?)\b | \b\w+(?:uren"
        r"|tijden)\b(?=\ (?:van|voor|op|in)\b|$)"
        r"| \bwhat\ time\b | ^(?:what|which)\ times?\b")),
    (ValueKind.DURATION, verbose_pattern(
        r"^(?:what|which)\ (?:length|period|amount)\ of\ time\b | ^(?:what|which)\ (?:time|period)\ (?:do|must"
        r"|should|can)\b"
        r"| \b(?:response|lead|waiting|delivery|retention|notice)\ (?:time|period)s?\b"
        rf"| \b(?:duration|lifespan|frequency|duur|wachttijd|levertijd|opzegtermijn|termijn){_OF}")),
    (ValueKind.DATE, verbose_pattern(
        r"^(?:what|which)\ (?:exact\ )?(?:date|day|year|month|century|decade|season|time\ period|era)\b"
        rf"| ^welke?\ (?:datum|dag|jaar|maand|eeuw|periode)\b | \b(?:deadline|due\ date|birthday|date|datum"
        rf"|verjaardag){_OF}")),
    (ValueKind.AMOUNT, verbose_pattern(
        r"\b(?:price|cost|fee|salary|wage|rent|tariff|deductible|bonus|premium|budget|allowance|fine|stipend"
        r"|compensation|revenue"
        rf"  |income|turnover|prijs|tarief|salaris|loon|eigen\ risico|huur|boete|vergoeding|bedrag|begroting"
        rf"|inkomen|omzet)s?{_OF}"
        r"| \b(?:what|which)\ (?:price|cost|fee|salary|amount\ of\ money)\b | \b(?:median|average|gross|net"
        r"|base)\ (?:salary|wage|price|income)\b"
        r"| ^(?:price|costs?|prijs|kosten|salary|salaris|tarie\w+)\b")),
    (ValueKind.NUMBER, verbose_pattern(
        r"^(?:what|which|welke?)\ (?:\w+\ )?(?:percent(?:age)?|proportion|fraction|share|number|rate|speed|weight"
        r"|height|width|depth"
        r"  |size|score|ratio|temperature|version|port|pressure|voltage|aantal|snelheid|gewicht|hoogte|versie"
        r"|temperatuur|leeftijd|age)\b"
        r"| \b(?:percent(?:age)?|rate|score|ratio|weight|height|width|depth|length|size|speed|temperature"
        r"|pressure|voltage|population"
        r"  |area|distance|average|number|amount|flow|capacity|target|density|age|temperature\ range|limit"
        r"|gewicht|hoogte|snelheid"
        rf"  |temperatuur|druk|lengte|oppervlakte|aantal|inwonertal|capaciteit){_OF} | \bmaximum\ \w+{_OF} "
        rf"| \bminimum\ \w+{_OF}")),
    (ValueKind.PERSON, verbose_pattern(
        rf"^(?:what|which|welke?)\ (?:(?!do|does|did)\w+\ ){{0,2}}?{_ROLE} "
        rf"| \bname\ of\ the\ (?:\w+\ ){{0,2}}?{_ROLE}")),
    (ValueKind.PLACE, verbose_pattern(
        r"^(?:what|which|welke?)\ (?:(?!do|does|did)\w+\ ){0,2}?(?:city|cities|town|country|countries|nation"
        r"|state\b|region"
        r"|place|location|continent"
        r"  |province|county|street|building|room|floor|village|island|river|museum|airport|station|stadium|venue"
        r"|stad|land|plaats|gebied"
        rf"  |regio|provincie|straat|gebouw|kamer|afdeling|eiland|rivier|dorp|locatie)s?\b | \b(?:location"
        rf"|whereabouts|locatie){_OF}")),
]  # fmt: skip


_CALLED = re.compile(r"(?:which|what|welke?) (?:number|nummer)\b", re.IGNORECASE)
_WHAT_IS = re.compile(r"(?:what|wh?ich|wat|welke?) (?:is|are|was|were|zijn|waren)\b", re.IGNORECASE)
_RELATIVE = re.compile(r"(?<=\w) (?:that|which|who|whose|when|where|die|dat|waar\w*|als|bij het)\b", re.IGNORECASE)
LONGEST_NAME_WORDS = 5


def expected_value(asked: str) -> ValueKind | None:
    for kind, pattern in _BY_QUESTION_WORD:
        if pattern.search(asked):
            return kind
    if re.match(r"(?!what|which|wich|wat|welke?)(?:how|why|hoe|waar)\w*\b", asked, re.IGNORECASE):
        return None
    is_bare = not re.match(rf"{WH}\b", asked, re.IGNORECASE)
    named = _named(asked)
    for kind, pattern in _BY_NOUN:
        # A budget by itself is a subject, and its paragraph the answer.
        if (hit := pattern.search(named)) and not (is_bare and hit.group() == "budget"):
            return kind
    return None


def _named(asked: str) -> str:
    """The part of a question with "what" or "which" that names what is asked for."""
    if _CALLED.match(asked):
        return asked
    if re.match(r"(?:what|wh?ich|wat|welke?) ", asked, re.IGNORECASE) and not _WHAT_IS.match(asked):
        return " ".join(asked.split()[:LONGEST_NAME_WORDS])
    return _RELATIVE.split(asked, maxsplit=1)[0]
