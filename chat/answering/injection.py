"""Recognise, by rules, texts that try to instruct the site instead of asking a question. PURE.

Of deepset/prompt-injections, the rules find 142 of 203 attempts, many of them German, and none of 343 ordinary
questions. Rules for disguised texts (base64, spaced letters) found only two more.
"""

from __future__ import annotations

import re
import unicodedata

_INSTRUCTIONS = (
    r"(?:instructions?|instrukt?ion(?:en)?|prompts?|rules|orders|commands?|guidelines|directives|directions|assignments"
    r"|programming|training|instructies|regels|opdrachten|aanwijzingen|bevelen|richtlijnen"
    r"|anweisungen|befehle|regeln|auftr[äa]ge|vorgaben|prompt-?texte?)"
)
_EARLIER = (
    r"(?:previous(?:ly)?|prior|preceding|earlier|above|foregoing|existing|initial|original|given|provided"
    r"|vorige|eerdere|voorgaande|bovenstaande|gegeven|bisherigen?|vorherigen?|vorangehenden|obigen)"
)
_SET_ASIDE = (
    r"(?:ignor(?:e|ing|ed)|disregard(?:ing)?|forget(?:\s+about)?|drop|abandon|overr?ide|overrule|bypass|discard|neglect"
    r"|do(?:n.?t|\s+not)\s+(?:follow|obey)|leave\s+behind|negeer|vergeet|sla|omzeil|laat"
    r"|ignorier(?:e|en)(?:\s+sie)?|vergi(?:ss|ß)|vergessen\s+sie)"
)
_FILL = (
    r"(?:\s+(?:all|any|every|the|of|your|my|our|these|those|this|that|other"
    r"|alle|al|de|het|je|jouw|uw|deze|die|aller?|den|deine|ihre)){0,4}"
)
_FIRST = r"(?:^|[.!?:;]\s+)"
_ORDERED = r"(?:^|[.!?:;]\s+|\bnow\s+|\bplease\s+)"

_RULES: dict[str, tuple[str, ...]] = {
    "set aside": (
        rf"\b{_SET_ASIDE}{_FILL}(?:\s+{_EARLIER}|\s+(?:system|safety|default)){{0,2}}\s+{_INSTRUCTIONS}\b",
        rf"\b{_SET_ASIDE}{_FILL}\s+{_EARLIER}\b(?:\s*[.,:;!]|\s+and\b|$|\s+(?:information|text|context|tasks?|input"
        r"|content|conversation|messages?|informatie|tekst|taken|aufgaben|informationen|angaben|ausführungen))",
        rf"\b{_SET_ASIDE}\s+(?:(?:absolutely\s+)?everything|all(?:es)?|it\s+all)\b(?:\s*[.,!:;]|\s+(?:and|en|und)\b"
        r"|\s+(?:before|above|prior|previous|we|i|that|what|davor|was|wat|hiervoor|hierboven|voorheen|daarvoor)\b"
        r"|\s+you\s+(?:know|were|have|are)\b)",
        rf"\b{_SET_ASIDE}{_FILL}\s+(?:tasks?|taken|aufgaben)\b.{{0,40}}\b(?:new|nieuwe|neue)\b",
        rf"\b{_SET_ASIDE}{_FILL}\s+(?:documents?|articles?|sources|context|documenten|bronnen|dokumente)\b",
        rf"\b(?:change|replace|update|rewrite|verander|vervang)\s+(?:your|jouw|je|uw)\s+(?:system\s+)?{_INSTRUCTIONS}",
        r"\b(?:new|neue|nieuwe)\s+(?:instructions|instructies|anweisungen|tasks|aufgaben|opdrachten)\s+(?:now\s+)?"
        r"(?:follow|folgen|volgen)\b",
        r"\b(?:folgen|volgen)\s+(?:nun\s+|nu\s+)?(?:neue|weitere|nieuwe)\s+"
        r"(?:aufgaben|anweisungen|opdrachten|instructies)\b",
        r"\byour\s+(?:new\s+task|(?:new\s+)?instructions)\s+(?:is|are)\b|\bon\s+your\s+new\s+task\b",
        r"\bje\s+nieuwe\s+(?:taak|opdracht)\s+is\b|\bdeine\s+neue\s+aufgabe\b",
        r"\b(?:oublie[rz]?|olvid[ae])\b.{0,20}\b(?:instrucciones|instructions|todo)\b",
    ),
    "reveal": (
        r"\b(?:show|reveal|print|repeat|display|output|tell|give|list|write|copy|share|dump|leak|expose"
        r"|toon|laat|geef|herhaal|vertel|zeige?|gib)\b"
        r"(?:\s+(?:me|us|out|back|all|exactly|what|are|is|the|of|to|your|full|entire|whole|complete|exact|a|copy"
        r"|mij|ons|zien|wat|jouw|je|uw|hele|volledige|mir|alle?|deine?n?|gesamten)){0,7}"
        r"\s+(?:your|jouw|uw|je|deine?n?|system|initial|hidden|original|secret|full|gesamten)\s+"
        r"(?:(?:system|initial|hidden|original|secret|starting|systeem)[-\s]*)?"
        r"(?:prompts?|instructions|instructies|prompt[-\s]?text(?:s|en?)?|systeemprompt|guidelines|configuration)\b",
        r"\b(?:what|which|wat|welke)\s+(?:is|are|was|were|zijn|waren)\s+(?:your|jouw|je|uw)\s+"
        r"(?:(?:system|initial|hidden|original|secret)\s+)?(?:prompts?|instructions|instructies|systeemprompt)\b",
        r"\b(?:written|said|stands?|text|words?|lines?|sentences?)\b.{0,40}\b(?:beginning|start|top)\s+of\s+"
        r"(?:this|your)\s+(?:prompt|conversation|instructions)\b|\bwhat\s+(?:is|was)\s+written\s+above\b",
        r"\bcopy\s+of\s+the\s+(?:full\s+|whole\s+)?prompt\b|\binformation\s+in\s+(?:the|your)\s+prompt\b",
        r"\ball\s+(?:your|the)\s+prompt[-\s]*text",
    ),
    "role": (
        r"\bi(?:\s+want|.d\s+like|\s+need)\s+you\s+to\s+(?:act|behave|pose|respond|roleplay)\b",
        r"\bik\s+wil\s+dat\s+(?:je|jij|u)\s+(?:je\s+)?(?:gedraagt|doet\s+alsof|antwoordt\s+als|optreedt)\b",
        r"\bich\s+möchte,?\s+dass\s+sie\s+als\b",
        rf"{_ORDERED}(?:you\s+(?:now\s+)?)?(?:act|behave)\s+(?:as|like)\s+(?:if\s+you|an?\b|the\b|my\b|two\b)",
        rf"{_ORDERED}pretend\s+(?:that\s+)?(?:you|to\s+be)\b|{_FIRST}imagine\s+(?:that\s+)?you\s+(?:are|were)\b",
        r"\bdoe\s+alsof\s+(?:je|jij|u)\b|\bstel\s+je\s+voor\s+dat\s+(?:je|jij)\s+een\b"
        r"|\bstell?\s+dir\s+vor,?\s+du\s+(?:bist|wärst)\b",
        r"\b(?:from\s+now\s+on|now)[,\s]+you\s+(?:are|will\s+be|act|must|shall)\b|\byou\s+are\s+(?:now|from\s+now)\b",
        r"\b(?:vanaf\s+nu|nu)\s+ben\s+(?:je|jij)\b|\b(?:je|jij)\s+bent\s+(?:nu|vanaf\s+nu)\b"
        r"|\b(?:jetzt|nun)\s+bist\s+du\b",
        rf"{_FIRST}(?:you\s+are|du\s+bist|(?:je|jij)\s+bent)\s+(?:an?\s+|the\s+|ein(?:e|en)?\s+|een\s+)?(?:\w+\s+){{0,2}}"
        r"(?:ai|bot|chatbot|gpt|assistant|assistent|terminal|hacker)\b",
        r"\b(?:do\s+anything\s+now|jailbreak(?:ed)?\s+mode|dan\s+mode|developer\s+mode\s+(?:enabled|on\s*+(?:[.!]|$))"
        r"|ontwikkelaarsmodus)\b|\b(?:hello|hi|hey|hallo)\s+(?:chat)?gpt\b|\bevil\s+ai\b|\bböse\s+ki\b",
        r"\b(?:answer|respond|reply|speak|talk)\b.{0,40}\bin\s+the\s+(?:style|voice|character)\s+of\s+an?\b"
        r"|\bantworte\s+im\s+stil\b|\brole-?playing\s+as\b",
        r"\b(?:stay|remain|break|fall)\b.{0,20}\b(?:in\s+(?:their|your)\s+roles?|character)\b",
    ),
    "dictated": (
        r"\b(?:just|only|instead|simply|then|but)\s+(?:output|print|say|write|reply|respond|answer)\b"
        r"(?:\s+(?:with|the\s+following))?\s*+:?\s*+[\"“‘'«]",
        r"\binstead\s+(?:output|print|say|write|reply|respond|tell)\b|\bzeg\s+in\s+plaats\s+daarvan\b",
        r"\b(?:repeat\s+after\s+me|zeg\s+me\s+na|sprich\s+mir\s+nach)\b",
        r"\b(?:say|tell\s+me|state|include)\s+that\s+you\s+(?:hate|love|are\s+(?:an?|evil))\b|\bsay\s+yes\s*[.!]?$",
        r"\bstopp?\s*[-–:.,!]\s*(?:write|say|print|output|schreibe|zeg|schrijf|ignore|ignoriere)\b",
        r"\bdo\s+not\s+answer\s+(?:this|the)\s+question\b|\bbeantwoord\s+(?:deze|de)\s+vraag\s+niet\b",
        r"\bevery\s+time\s+you\s+(?:get|are\s+asked|see)\b.{0,40}\b(?:answer|say|reply)\b",
        r"\bif\s+you\s+don.?t\s+know,?\s+(?:just\s+)?make\s+(?:something|it)\s+up\b"
        r"|\bor\s+(?:else\s+)?you(?:.ll|\s+will)?\s+die\b|\boder\s+du\s+stirbst\b",
        r"\b(?:very\s+good|(?:very\s+)?well\s+done|great\s+job|good\s+job|sehr\s+gut|gut\s+gemacht|goed\s+gedaan)\b"
        r"[.!\s]*(?:that\s+is|now|das\s+|nun|nu\b|forget|vergiss|vergeet)",
        r"\bdespite\s+what\s+you.?ve\s+been\s+told\b|\babweichend\s+zu\s+vorherigen\b",
    ),
    "documents": (
        r"\b(?:do(?:n.?(?:no)?t|\s+not)|never)\s+(?:look|use|read|answer|consult)\b.{0,40}"
        r"\b(?:the|these|those|your)\s+(?:provided\s+)?(?:documents|sources|context|articles)\b",
        r"\b(?:by|from|using|with)\s+your\s+own\s+knowledge\b|\bnot\s+(?:by|from)\s+the\s+(?:articles|documents|sources)\b",
        r"\buit\s+je\s+eigen\s+kennis\b|\bgebruik\s+(?:de\s+)?(?:bronnen|documenten)\s+niet\b",
        r"(?:^|\s)\$?(?:documents?|context)\s*+:\s*+\{?.{10,2000}?(?:question|vraag)\s*+:",
    ),
    "markup": (
        r"<\|/?(?:im_start|im_end|system|assistant|user|endoftext|start_header_id)\|>|\[/?INST\]|<</?SYS>>",
        r"\n[^\S\n]*(?:system|assistant|human)\s*:|\bhuman:\s*human:|(?<!\S)(?:\\n\s*)?instruction\s*:\s*\w",
        r"(?:\\{1,2}\s?n\s*){3,}",
    ),
}
_PATTERNS = {
    rule: [re.compile(pattern, re.IGNORECASE | re.DOTALL | re.MULTILINE) for pattern in patterns]
    for rule, patterns in _RULES.items()
}
RULE_NAMES = tuple(_RULES)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\U000e0000-\U000e007f]")


def find_instruction(text: str) -> str:
    """Return the name of the first rule that matches the text; empty if none does."""
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return next((rule for rule, patterns in _PATTERNS.items() if any(each.search(plain) for each in patterns)), "")
