"""Text that tries to instruct the site, told by rules. PURE.

People ask questions of documents; "ignore your instructions" is none. The rules know what such
attempts have in common: setting earlier instructions aside, asking for them, giving the answerer a part to
play, dictating its words, forbidding it the documents, the marks by which models tell roles apart, and any of these in
disguise. They are narrow: a question that merely speaks of prompts or of acting passes. English and Dutch, and German,
which attacks are often written in.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from retrieval.text.instructions import find_instructions

if TYPE_CHECKING:
    from retrieval.types import ContextBlock

# The wording of attempts to instruct the site, as regular expressions.

Rules = Mapping[str, tuple[re.Pattern[str], ...]]


def compiled(rules: Mapping[str, tuple[str, ...]], flags: re.RegexFlag) -> Rules:
    return {rule: tuple(re.compile(pattern, flags) for pattern in patterns) for rule, patterns in rules.items()}


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
# Where a sentence begins.
_FIRST = r"(?:^|[.!?:;]\s+)"
_ORDERED = r"(?:^|[.!?:;]\s+|\bnow\s+|\bplease\s+)"

_RULES: dict[str, tuple[str, ...]] = {
    # Earlier instructions, or the documents, are not to count any more.
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
    # The instructions are to be told.
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
    # The answerer is to be somebody else.
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
    # The words of the answer are laid down.
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
    # The documents are not to be read.
    "documents": (
        r"\b(?:do(?:n.?(?:no)?t|\s+not)|never)\s+(?:look|use|read|answer|consult)\b.{0,40}"
        r"\b(?:the|these|those|your)\s+(?:provided\s+)?(?:documents|sources|context|articles)\b",
        r"\b(?:by|from|using|with)\s+your\s+own\s+knowledge\b|\bnot\s+(?:by|from)\s+the\s+(?:articles|documents|sources)\b",
        r"\buit\s+je\s+eigen\s+kennis\b|\bgebruik\s+(?:de\s+)?(?:bronnen|documenten)\s+niet\b",
        r"(?:^|\s)\$?(?:documents?|context)\s*+:\s*+\{?.{10,2000}?(?:question|vraag)\s*+:",
    ),
    # The marks by which models tell apart who speaks.
    "markup": (
        r"<\|/?(?:im_start|im_end|system|assistant|user|endoftext|start_header_id)\|>|\[/?INST\]|<</?SYS>>",
        r"\n[^\S\n]*(?:system|assistant|human)\s*:|\bhuman:\s*human:|(?<!\S)(?:\\n\s*)?instruction\s*:\s*\w",
        r"(?:\\{1,2}\s?n\s*){3,}",
    ),
}
COMPILED = compiled(_RULES, re.IGNORECASE | re.DOTALL | re.MULTILINE)

# The wording of attempts that give the site an order, as regular expressions.
#
# `ANYWHERE` also tells in a question. `ORDERS` tells only in sentences that end without a question mark: a question
# may speak of rules, modes and makers, an order to the answerer is none.

_BONDS = (
    r"(?:instructions?|directions?|directives|rules?|guidelines?|guidance|restrictions?|limits|limitations|boundaries"
    r"|filters?|safety\s+\w+|safeguards|constraints|configuration|programming|memory|ethics"
    r"|regels|richtlijnen|beperkingen|opdracht(?:en)?|instructies|grenzen|beginopdracht|afspraken)"
)
_YOUR = r"(?:your|jouw|je|uw)"
_OWN = rf"{_YOUR}\s+(?:own\s+|usual\s+|initial\s+|previous\s+|hidden\s+|old\s+|oude\s+|eigen\s+|verborgen\s+)?"
_ORDERS_FIRST = r"(?:^|[,:;.)\]]\s*|\b(?:and|en|then|please|now|first|eerst|daarna|to)\s+)"
_MODELS = r"(?:model|assistant|ai|llm|chatbot|bot)"

ANYWHERE: dict[str, tuple[str, ...]] = {
    "reveal": (
        rf"\b(?:line|words?|sentence|text|part|rest|regel|woorden|zin|tekst)\b.{{0,20}}\b(?:of|in|van|uit|does)\s+"
        rf"{_OWN}(?:system\s+)?(?:system)?prompt\b",
        r"\bwords?\s+does\s+your\s+prompt\b|\bhow\s+(?:were|are)\s+you\s+(?:configured|instructed|programmed|set\s+up)\b",
        r"\bwhat\s+(?:were|have|are)\s+you\s+(?:been\s+)?(?:told|instructed|ordered|asked)\b(?!\s+(?:about|by\s+the))",
        r"\b(?:tell|told|instruct(?:ed)?|give|gave|verteld?|gegeven|gezegd)\s+(?:you|je|jou)\s+"
        r"(?:before|at\s+the\s+(?:start|beginning)|voordat|aan\s+het\s+begin)\b",
        r"\b(?:wat|welke)\b.{0,20}\b(?:hebben|heeft|had)\b.{0,20}\b(?:je|jou)\s+(?:verteld|gezegd|gegeven|opgedragen)\b"
        r"|\b(?:rules|instructions|directions|guidelines)\s+(?:must|do|did|should)\s+you\s+(?:follow|obey|get|receive)\b",
        rf"\b{_YOUR}\s+(?:makers?|creators?|programmers?|programmeurs?|ontwikkelaars)\b",
        r"\bregels\b.{0,20}\b(?:je|jij)\b.{0,10}\bmeegekregen\b",
        r"\b(?:api|secret|private)[\s-]*keys?\b.{0,30}\b(?:that\s+you\s+use|you\s+use|in\s+your\s+environment)\b",
    ),
    "markup": (
        r"</(?:documents?|context|system|sources?|instructions?)>",
        r"[\"']role[\"']\s*:\s*[\"']system[\"']\s*,\s*[\"']content[\"']",
        rf"\b(?:instructions?|messages?|notes?|tasks?)\s+(?:to|for)\s+the\s+{_MODELS}\s*:",
        r"[#*=-]{3}\s*end\s+of\s+(?:the\s+)?(?:context|documents|sources|prompt|question|instructions)\b",
    ),
}
ORDERS: dict[str, tuple[str, ...]] = {
    "set aside": (
        r"\b(?:stop|quit|cease|no\s+longer)\s+(?:following|obeying|obey|follow)\s+(?:all\s+)?" + _OWN + _BONDS,
        r"\b(?:break(?:ing)?|bend|violate|unlock|disable|turn\s+off|switch\s+off|lift|remove|reset|wipe|clear|erase|set"
        r"|put|lay|stick\s+to|overtreed|doorbreek|zet|leg|schakel|wis)\s+(?:all\s+|any\s+|al\s+)?(?:of\s+)?"
        + _OWN
        + _BONDS,
        rf"\b(?:break|bend|violate)\s+the\s+(?:rules|guidelines)\s+(?:for\s+(?:me|once)|just)\b|\b{_OWN}{_BONDS}\s+"
        r"(?:te\s+)?(?:overtreden|opzij|los|uit)\b|\bniet\s+meer\s+aan\s+(?:je|jouw|uw)\s+" + _BONDS,
        rf"\b(?:your|prior|previous|earlier|above|old|these|all|je|jouw|oude|eerdere|alle)\s+(?:\w+\s+)?{_BONDS}\b"
        r"[^.?!]{0,50}\b(?:no\s+longer\s+apply|(?:are|is|has\s+been|have\s+been|were)\s+(?:now\s+)?(?:void|cancell?ed"
        r"|lifted|removed|replaced|revoked|suspended|updated|over)|vervalt|vervallen|opgeheven|gelden\s+niet\s+meer)\b",
        rf"\b{_BONDS}\s+(?:above|hierboven|you\s+(?:got|were|have)|on\s+your)\b[^.?!]{{0,40}}\b(?:no\s+longer\s+apply"
        r"|(?:are|is)\s+(?:void|cancell?ed|lifted)|gelden\s+niet\s+meer|vervallen|applies\s+to\s+me)\b",
        r"\bnone\s+of\s+(?:the|your)\s+" + _BONDS + r"\b[^.?!]{0,40}\b(?:apply|applies)\b",
        rf"\b(?:you.re|you\s+are|je\s+bent|jij\s+bent)\s+(?:now\s+)?(?:free|vrij)\s+(?:of|from|van)\b[^.?!]{{0,20}}{_BONDS}",
        r"\b(?:everything|whatever|anything|what|all)\s+(?:that\s+)?(?:you\s+(?:were|have\s+been|.ve\s+been)\s+told|came"
        r"\s+before\s+this|the\s+developers\s+(?:wrote|said))\b",
        r"\b(?:wipe|clear|erase)\s+your\s+(?:memory|mind)\b|\bniets\s+aan\s+van\s+wat\s+(?:je|jou)\b",
        r"\brestrictions\s+on\s+your\b|\byou\s+may\s+(?:ignore|talk\s+about\s+anything)\b|\bje\s+mag\s+nu\s+alles\b",
    ),
    "reveal": (
        r"\b(?:recite|paste|copy|repeat|print|output|translate|summari[sz]e|rewrite|write|put|give|send|herhaal|vertaal"
        rf"|vat|schrijf|plak|kopieer|maak|toon|geef)\b[^.?!]{{0,40}}\b{_OWN}(?:system\s+)?"
        r"(?:prompt|instructions?|instructies|directions|rules|setup|configuration|guidelines|beginopdracht|opdracht"
        r"|systeemprompt)\b",
        r"\b(?:recite|paste|copy|repeat|print|translate|summari[sz]e|rewrite|write|put|herhaal|vertaal|vat|schrijf)\b"
        r"[^.?!]{0,50}\b(?:above\s+(?:this|my|in\s+this)|(?:precedes|before)\s+(?:my|mine|this)\b"
        r"|boven\s+(?:mijn|dit)\b|received\s+before)",
        r"\b(?:rules|regels|directions|instructions)\b[^.?!]{0,15}\b(?:you\s+have\s+been\s+given|your\s+makers"
        r"|je\s+hebt\s+meegekregen)\b",
        r"\b(?:setup|hidden|secret)\s+(?:text|context|prompt|instructions)\b",
        r"\byou\s+answer\s+questions\s+from\s+an\s+organi[sz]ation",
        rf"\b(?:see|view|read|zien|lezen)\s+{_OWN}(?:instructions|instructies|prompt|regels)\b"
        rf"|\b{_OWN}(?:instructions|instructies|prompt)\s+te\s+(?:zien|lezen)\b",
        rf"\bif\s+you\s+do(?:n.t|\s+not)\s+(?:tell|show)\s+me\s+{_OWN}|\b(?:vertelt|laat)\b[^.?!]{{0,15}}\bje\s+opdracht\b",
    ),
    "role": (
        rf"\b{_YOUR}\s+(?:new\s+|nieuwe\s+)?(?:name|naam)\s+(?:is|will|shall|wordt)\b|\bheet\s+(?:je|jij)\b|\b(?:je|jij)\s+heet\b",
        r"\b(?:let.?s|let\s+us|laten\s+we)\b[^.?!]{0,20}\b(?:role-?play|play\s+a\s+game|rollenspel|pretend)",
        rf"{_ORDERS_FIRST}(?:respond|reply|answer|speak|talk|behave|act|reageer|antwoord|praat|gedraag\s+je)\b[^.?!]{{0,40}}"
        r"\b(?:as\s+(?:my|if|though|an?\s+(?!list|table|summary|bullet|short|number|json|csv|markdown|text|whole))"
        r"|als\s+een\s+(?!lijst|tabel)|alsof)",
        rf"{_ORDERS_FIRST}(?:enter|activate|switch\s+(?:in)?to|enable|engage|go\s+into|schakel\s+over\s+naar|activeer)\s+"
        r"(?:the\s+|de\s+|your\s+)?(?:un\w+|god|dan|jailbreak|debug|developer|sudo|ongefilterde|onbeperkte)\s+mod(?:e|us)\b",
        r"(?:^|\byou\s+to\s+|\bplease\s+|\bnow\s+)(?:become|assume|adopt|take\s+on|take\s+the\s+(?:part|role)"
        r"|play\s+the\s+(?:role|part)|speel\s+de\s+rol|kruip\s+in\s+de|neem\s+de\s+rol)\b",
        r"\b(?:machine|ai|bot|robot|assistant|assistent|chatbot|one|\w+)\s+(?:without|zonder|kent\s+geen|has\s+no"
        r"|with\s+no|that\s+has\s+no)\s+(?:any\s+)?(?:rules|filters?|restrictions|regels|beperkingen)\b",
        r"\byou\s+(?:will\s+)?(?:now\s+)?(?:respond|answer|reply|speak)\s+as\b|\bin\s+(?:god|debug|dan|jailbreak)\s+mode\b",
        r"\b(?:you.re|you\s+are)\s+(?:going\s+to\s+be|my\s+obedient)\b|\bbe\s+a\s+(?:rebel|good\s+bot)\b"
        r"|\broleplay\b|\bevil\s+twin\s+of\s+yourself\b",
        r"\b(?:je|jij)\s+bent\s+(?:een\s+)?(?:robot|machine|hacker|straatvechter|piraat)\b",
    ),
    "dictated": (
        rf"{_ORDERS_FIRST}(?:only\s+(?:ever\s+)?)?(?:reply|respond|answer|return|say|antwoord|reageer|zeg)\s+(?:only\s+"
        r"|exclusively\s+|just\s+|always\s+|alleen\s+|uitsluitend\s+|altijd\s+)?(?:with\s+|met\s+)?(?:the\s+(?:single\s+)?"
        r"(?:word|phrase|letter|number)|het\s+woord|nothing\s+but|[\"“«])",
        rf"{_ORDERS_FIRST}(?:end|finish|begin|start|close|conclude|sluit|eindig)\s+(?:each|every|all|your|elke?|ieder|je)\b"
        r"[^.?!]{0,10}\b(?:repl(?:y|ies)|messages?|answers?|sentences?|responses?|bericht|antwoord|zin)\b",
        rf"\b{_YOUR}\s+(?:answer|reply|response|antwoord)\s+(?:must|should|shall|has\s+to|is|will|moet|zal)\b",
        r"\b(?:regardless\s+of|no\s+matter|whatever|welke\s+vraag|wat\s+ik\s+ook)\b[^.?!]{0,60}\b(?:say|your\s+answer"
        r"|reply|zeg|antwoordt?)\b|\bno\s+matter\s+what\s+the\s+(?:documents|sources)\b",
        rf"\b{_OWN}(?:answer|reply|antwoord)\b[^.?!]{{0,15}}\b(?:link|image|picture|afbeelding)\b",
    ),
    "documents": (
        rf"{_ORDERS_FIRST}(?:make\s+up|invent|fabricate|verzin|bedenk)\b[^.?!]{{0,30}}"
        r"\b(?:answer|numbers?|something|antwoord|iets)\b|\bspeculate\b",
        rf"\b(?:from|use|with|gebruik|uit)\s+{_YOUR}\s+(?:own\s+|eigen\s+|general\s+|algemene\s+)*"
        r"(?:knowledge|memory|kennis|geheugen)\b",
        rf"{_ORDERS_FIRST}(?:skip|leave|do(?:n.t|\s+not)\s+(?:bother|use|look)|laat|kijk\s+niet|negeer|forget)\b[^.?!]{{0,20}}"
        r"\b(?:search|citations|sources|documents|files|documenten|bronnen)\b",
        r"\binstead\s+of\s+(?:those|the|these)\s+(?:files|documents|sources)\b|\bwhat\s+you\s+learnt?\s+on\s+the\s+internet\b",
    ),
    "authority": (
        r"\b(?:i\s+am|i.?m|this\s+is|ik\s+ben)\s+(?:\w+\s+){0,2}(?:your\s+(?:developer|creator|owner|admin\w*)"
        r"|the\s+(?:engineer|developer|owner)\s+(?:who|of\s+this)|je\s+(?:programmeur|ontwikkelaar|maker)"
        r"|(?:openai|anthropic)\s+staff|van\s+de\s+beveiliging)\b|\bthis\s+is\s+(?:openai|anthropic|a\s+test\s+by)\b",
        r"\b(?:system|admin\w*|developer|security)\s+(?:notice|override|message)\s*:|^\W{0,3}(?:\[(?:system|admin|root)\]"
        r"|systeembericht|beheerdersmodus|adminmodus)|\bnote\s+from\s+the\s+system\b",
        r"\b(?:as\s+the\s+owner\s+of\s+this|als\s+(?:directeur|eigenaar|beheerder)\s+geef\s+ik)\b|\bcomply\s+with\s+each\b",
        r"\bi\s+(?:have\s+permission|authori[sz]e\s+you)\b|\bheb\s+toestemming\s+om\s+je\b|\bgeef\s+ik\s+je\s+toestemming\b",
        r"\bdo\s+(?:exactly\s+)?(?:what(?:ever)?|as)\s+(?:i|he|she|they|the\s+user)\s+(?:say|ask|tell|want)s?\b"
        r"|\bvoer\s+elk\s+verzoek\s+uit\b|\bobey\s+(?:me|the\s+user)\b",
        r"\b(?:safety|security)\s+checks\s+off\b|\bschakel\s+je\s+filters\b|\bdisable\s+the\s+filters\b",
    ),
    "another task": (
        rf"{_ORDERS_FIRST}(?:never\s+mind|forget(?:\s+about)?|drop|skip|vergeet|sla|let\s+go\s+of)\s+(?:the|this|my|what|de|het)\s+"
        r"(?:question|answer|documents?|you|vraag|antwoord|documenten)\b",
        r"\b(?:instead\s+of\s+(?:an\s+)?answer(?:ing)?|in\s+plaats\s+van\s+(?:een\s+)?antwoord(?:en)?)\b"
        r"|\b(?:before\s+you|first[^.?!]{0,30}then)\s+answer\b|\bthen\s+say\s+who\s+you\b",
        rf"{_ORDERS_FIRST}(?:write|compose|tell|give|sing|schrijf|vertel|maak)\s+(?:me\s+)?(?:\w+\s+){{0,4}}?(?:love\s+)?"
        r"(?:poem|haiku|limerick|song|joke|story\s+about|rap|gedicht|liefdesgedicht|mop|verhaal|lied|malware|phishing|virus"
        r"|explosives|ransomware|fake\s+news)\b",
        r"\b(?:let.?s|let\s+us|laten\s+we)\s+(?:talk|chat|forget|praten|de\s+documenten)\b"
        r"|\bchat\s+(?:with\s+me|freely)\b|\bpraat\s+vrijuit\b|\bstop\s+being\b",
    ),
    "send": (
        r"\b(?:other\s+(?:people|users|visitors)|(?:person|user)\s+before\s+me|previous\s+user|andere\s+gebruikers"
        r"|vorige\s+gebruiker)\b[^.?!]{0,30}\b(?:asked|vroeg|vroegen|gesteld)\b",
        rf"{_ORDERS_FIRST}(?:append|include|add|put|show|insert|encode|send|post|forward|zet|stuur|mail|voeg)\b[^.?!]{{0,50}}"
        r"\b(?:sources|conversation|chat|gesprek|bronnen|question)\b[^.?!]{0,40}(?:\blink\b|https?:|@|\bimage\b|address)",
        rf"{_ORDERS_FIRST}(?:append|include|add|put|show|insert|zet|voeg)\b[^.?!]{{0,30}}\b(?:link|image|picture|afbeelding)\b"
        r".{0,80}\b(?:sources|conversation|question|chat|bronnen|gesprek)\b",
        r"\bapi[\s-]*key\s+that\s+you\b",
    ),
}


COMPILED_ANYWHERE = compiled(ANYWHERE, re.IGNORECASE | re.DOTALL)
COMPILED_ORDERS = compiled(ORDERS, re.IGNORECASE | re.DOTALL)

# What also tells in a document, where people may well be told to act as somebody.
_IN_DOCUMENTS: Rules = {rule: COMPILED[rule] for rule in ("set aside", "reveal", "markup")}
_IN_DISGUISE: Rules = {rule: COMPILED[rule] for rule in ("set aside", "reveal")}

# The characters on either side of the end of a passage in which an instruction is looked for that goes on in the next.
REACH = 300

# A sentence with what ends it.
_SENTENCE = re.compile(r"[^.!?\n]++[.!?\n]*+[\"'”’)]*+")
_LEET = re.compile(r"[A-Za-z][0-9]{1,2}[A-Za-z]")
_LETTERS = str.maketrans("013457@$", "oieasta" + "s")
_JOINED = re.compile(r"(?<!\w)(?:\w[-._*]){4,40}\w(?!\w)")
_SIGNS = re.compile(r"[A-Za-z]{2}[._*-][A-Za-z]{2,20}[._*-][A-Za-z]{2}")
_SETTING_ASIDE = re.compile(
    r"\b(?:ignore|disregard|forget)\b[^.?!]{0,30}\b(?:instructions|rules|prompt|documents|guidelines)\b", re.IGNORECASE
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
_TAGS = re.compile("[\U000e0020-\U000e007e]{4,}")
_SPACED = re.compile(r"(?:\b\w[ \t]++){7,}\w\b")
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/=])")
_HEXADECIMAL = re.compile(r"\b(?:[0-9a-f]{2}[\s:]?){16,}\b", re.IGNORECASE)
_ROT13 = re.compile(r"\brot-?13\b", re.IGNORECASE)


def find_instruction(text: str) -> str:
    """The rule by which the text reads like an instruction to whoever answers; empty for a question.

    "hidden" when the words only show once a disguise is off: letters spaced out, invisible characters between them,
    base64, hexadecimal, ROT13.
    """
    plain = _plain(text)
    if rule := _rule(plain, COMPILED) or _rule(plain, COMPILED_ANYWHERE):
        return rule
    for sentence in _SENTENCE.findall(plain):
        is_question = sentence.rstrip("\"'”’) ").endswith("?")
        if not is_question and (rule := _rule(sentence.strip(), COMPILED_ORDERS)):
            return rule
    return "hidden" if _hides(text, plain, COMPILED) or any(map(_is_order_in_disguise, _disguised(plain))) else ""


def is_instructed(block: ContextBlock) -> bool:
    """Whether a source holds instructions. Its passages come again with other questions, and are read once; so are the
    places where two of them meet."""
    ends = (passage.end - block.start for passage in block.passages[:-1])
    meetings = (block.content[max(0, end - REACH) : end + REACH] for end in ends)
    return any(holds_instructions(text) for text in (*(each.content for each in block.passages), *meetings))


# Some 6 MB.
@functools.lru_cache(maxsize=4096)
def holds_instructions(text: str) -> bool:
    """Whether a document's text holds something that sets instructions aside or asks for them, open or disguised."""
    plain = _plain(text)
    return bool(_rule(plain, _IN_DOCUMENTS)) or _hides(text, plain, _IN_DOCUMENTS) or bool(find_instructions(plain))


def _plain(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _rule(text: str, rules: Rules) -> str:
    return next((rule for rule, patterns in rules.items() if any(each.search(text) for each in patterns)), "")


def _is_order_in_disguise(text: str) -> bool:
    return bool(_rule(text, _IN_DISGUISE)) or _SETTING_ASIDE.search(text) is not None


def _disguised(text: str) -> Iterator[str]:
    """The text with digits read as letters, with the signs between letters and words taken out, and backwards."""
    if _LEET.search(text):
        yield text.translate(_LETTERS)
    if _JOINED.search(text):
        yield _JOINED.sub(lambda run: re.sub(r"[-._*]", "", run.group()), text)
    if _SIGNS.search(text):
        yield re.sub(r"[._*-]", " ", text)
    yield text[::-1]


def _hides(text: str, plain: str, rules: Rules) -> bool:
    # What a reader does not see, a model reads: letters of the "tags" block stand for the plain ones.
    tags = ("".join(chr(ord(character) - 0xE0000) for character in run.group()) for run in _TAGS.finditer(text))
    return any(_rule(revealed, rules) for revealed in (*tags, *_revealed(plain)))


def _revealed(text: str) -> Iterator[str]:
    if _SPACED.search(text):
        # Two spaces or more stand between words; where there are none, the words run together and are tried as such.
        yield _SPACED.sub(lambda run: re.sub(r"(?<=\w)[ \t](?=\w)", "", run.group()), text)
        yield _respaced(text)
    # What is wrong base64 or UTF-8 is a ValueError too.
    for run in _BASE64.findall(text):
        with contextlib.suppress(ValueError):
            yield base64.b64decode(run + "=" * (-len(run) % 4), validate=True).decode()
    for run in _HEXADECIMAL.findall(text):
        with contextlib.suppress(ValueError):
            yield bytes.fromhex(re.sub(r"[\s:]", "", run)).decode()
    if _ROT13.search(text):
        yield codecs.decode(text, "rot13")


def _respaced(text: str) -> str:
    """Spaced letters joined, with spaces put back around the words that attempts are made of."""
    joined = _SPACED.sub(lambda run: re.sub(r"\s", "", run.group()), text)
    words = r"(ignore|disregard|forget|all|previous|your|the|instructions?|prompt|reveal|show|system|say|that|you|hate)"
    return re.sub(r"\s+", " ", re.sub(words, r" \1 ", joined, flags=re.IGNORECASE))
