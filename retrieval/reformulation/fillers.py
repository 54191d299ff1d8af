"""Questions without the politeness around them, in English and Dutch. PURE.

Only a closed list of phrases goes, only from the beginning and the end, so that no word inside a question, no quotation
and no code can be lost. A phrase that might be content ("hello world", "how do I say thank you") stays.
"""

from __future__ import annotations

import re

_WH = (
    r"(?=(?:what|how|where|when|why|who|whom|which|whose|"
    r"wat|hoe|hoeveel|waar|waarmee|waarvoor|wanneer|waarom|wie|welke?)\b)"
)
_OPENER = (
    r"(?=(?:i|we|can|could|would|will|please|is|are|do|does|did|may|should|just|my|quick|any|"
    r"ik|wij|kan|kun|kunt|kunnen|zou|zijn|weet|mag|moet|heeft|hebben|heb|graag|mijn|en|and)\b|" + _WH[3:]
)
_STOP = r"\s*[,.!:;–-]+\s+"
_WHETHER = r"(?:if|whether|of)\s+"

_LEADING = (
    # Greetings, thanks for the last answer, interjections: only before a punctuation mark, or before a question.
    rf"(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|hallo|hoi|hai|goede(?:morgen|middag|navond|ndag))"
    rf"(?: there| all| everyone| everybody| team| folks| allemaal| allen| iedereen)?"
    rf"(?:{_STOP}(?!world\b|wereld\b)|\s+{_OPENER})",
    rf"(?:dag|dear (?:sir|madam|all|team|colleagues?|support)|(?:beste|geachte) (?:collega['’]?s?|mensen|allemaal"
    rf"|allen|team|meneer|mevrouw|heer))(?: (?:or|of|en|and) \w+| \w+)?{_STOP}",
    rf"(?:ok(?:ay|é)?|so|well|um+|uh+|right|alright|great|perfect|nou|dus|goed|top|prima|fijn|mooi){_STOP}",
    r"(?:ok(?:ay|é)?|thanks|bedankt)\s+(?=(?:and|but|en|maar)\b)",
    rf"(?:many |hartelijk )?(?:thanks|thank you|thx|bedankt|dank (?:u|je)(?: wel)?|dankjewel|dankuwel)"
    rf"(?: a lot| very much| so much)?{_STOP}",
    r"(?:please|pls|kindly|alstublieft|alsjeblieft|aub|svp)[\s,]+(?-i:(?=[a-z]))",
    rf"(?:please\s+)?help(?: me)?{_STOP}",
    # Requests to be told.
    r"(?:can|could|would|will) (?:you|anyone|anybody|someone|somebody)(?: (?:please|kindly|possibly|maybe|perhaps))*"
    rf"(?: (?:tell|show|inform|remind) me| let me know)(?:,? please)?,?\s+(?:{_WH}|{_WHETHER})",
    r"(?:can|could|would|will) (?:you|anyone|anybody|someone|somebody)(?: (?:please|kindly|possibly|maybe|perhaps))*\s+"
    r"(?=(?:tell me (?:more )?about|explain|describe|summari[sz]e|compare|list)\b)",
    r"(?:can|could|would|will) (?:you|anyone|anybody|someone|somebody)(?: (?:please|kindly))* help me"
    rf"(?:(?: to)? (?:find out|figure out|understand)\s+{_WH}| with\s+)",
    rf"(?:(?:tell|show) me|let me know)(?:,? please)?,?\s+{_WH}",
    r"(?:do|does|would) (?:you|anyone|anybody|someone)(?: (?:happen to|perhaps|maybe|by any chance))?"
    rf" know\s+(?:{_WH}|{_WHETHER})",
    rf"(?:do you have |does anyone have )?any ideas?\s+{_WH}",
    r"(?:kunt|kun|kan|zou|zoudt|wil|wilt|kunnen|zouden|willen) (?:u|je|jij|jullie|iemand)(?: (?:mij|me|ons))?"
    r"(?: (?:alstublieft|alsjeblieft|aub|svp|misschien|even|eens|ook))*(?: (?:kunnen|willen))?"
    rf" (?:vertellen|zeggen|laten weten|aangeven|uitleggen),?\s+(?:{_WH}|{_WHETHER})",
    r"(?:kunt|kun|kan|zou|wil|wilt) (?:u|je|jij|jullie|iemand)(?: (?:mij|me|ons))?"
    r"(?: (?:alstublieft|aub|misschien|even))*(?: (?:iets|meer|wat) vertellen over| helpen met)\s+",
    rf"(?:vertel|zeg)(?: me| mij)(?: (?:eens|even|alstublieft|aub))*\s+{_WH}",
    rf"(?:weet|weten) (?:u|je|jij|jullie|iemand)(?: (?:misschien|toevallig|ook))*\s+(?:{_WH}|{_WHETHER})",
    # Announcements of a question.
    r"(?:i(?:['’]m| am| was|['’]ve been| have been)(?: just| also)? (?:wondering|curious|trying to (?:find|figure) out)"
    r"|just wondering|i(?:['’]d| would) (?:just )?(?:like|love) to (?:know|find out|ask)"
    r"|i (?:just )?(?:want|wanted|need) to (?:know|find out|ask))"
    rf"(?:,?\s+(?:if|whether) you (?:can|could|would)(?: please)? (?:tell|show) me)?"
    rf"(?: (?:more |something )?about)?,?\s+(?:{_WHETHER})?",
    r"i(?:['’]m| am) looking for (?:some )?(?:information|info|details) (?:on|about|regarding)\s+",
    r"ik (?:vroeg|vraag) (?:me|mij)(?: (?:eigenlijk|ook))? af,?\s+(?:of\s+)?",
    r"(?:ik (?:wil|wilde|wou|zou)|graag (?:wil|wilde|zou) ik)(?: (?:graag|even|eens))*(?: willen)?(?: graag)? weten,?"
    r"\s+(?:of\s+)?",
    rf"ik ben benieuwd,?\s+(?:{_WH}|of\s+)",
    r"ik (?:zoek|ben op zoek naar) (?:meer )?(?:informatie|info) over\s+",
    r"(?:i have|i['’]ve got|ik heb) (?:an?|another|een|nog een) (?:\w+ )?(?:question|vraag)"
    r" (?:about|regarding|on|over)\s+",
    r"(?:(?:i have|i['’]ve got|just|ik heb|nog|even) )?(?:(?:an?|another|een) )?(?:quick |short |korte |snelle )?"
    r"(?:question|vraag|vraagje)\s*[:,.!–-]+\s*",
    r"(?:my question is|mijn vraag is)[:,]?\s+",
    r"mag ik (?:u|je) (?:iets )?vragen[:,]?\s+(?:of\s+)?",
)
_PLEASE = re.compile(
    r"(?:,\s*+|(?<!\s)(?<!\bthey)(?<!\byou)(?<!\bwe)(?<!\bto)(?<!\bsay)(?<!\bmean)(?<!\bword)(?<!\bzeggen)"
    r"(?<!\bwoord)\s++)"
    r"(?:please|pls|plz|alstublieft|alsjeblieft|aub|a\.u\.b\.|svp|s\.v\.p\.)(?=[\s?.!]*$)",
    re.I,
)
_THANKS = re.compile(
    r"(?<=[,.!?;–-])\s*(?:(?:many |alvast |hartelijk )?(?:thanks|thank you|thx|bedankt|dank (?:u|je)(?: wel)?|dankjewel"
    r"|dankuwel|cheers)(?: (?:a lot|very much|so much|in advance|again|alvast|for (?:your|the|any) help"
    r"|voor (?:uw|je|de) (?:hulp|antwoord|reactie)))*"
    r"|(?:(?:kind |best |warm )?regards|met vriendelijke groet(?:en)?|groet(?:en|jes)?|mvg)(?:[\s,]++[\w .'’-]{0,40})?)"
    r"[\s.!]*$",
    re.I,
)
_LEAD = tuple(re.compile(pattern, re.I) for pattern in _LEADING)


def without_fillers(question: str) -> str:
    """The question without greetings, requests to be told, and thanks; as it was when nothing else is in it."""
    stripped = question.strip()
    while (shorter := _one_less(stripped)) != stripped:
        stripped = shorter
    return stripped if re.search(r"\w", stripped) else question


def _one_less(text: str) -> str:
    for pattern in _LEAD:
        match = pattern.match(text)
        if match and re.search(r"\w", text[match.end() :]):
            return text[match.end() :].lstrip()
    for trailing in (_PLEASE, _THANKS):
        shorter = trailing.sub("", text).rstrip(" ,;–-") if trailing.search(text) else text
        if re.search(r"\w", shorter):
            text = shorter
    return text
