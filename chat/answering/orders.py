"""The wording of attempts that give the site an order, as regular expressions. PURE; see chat.answering.injection.

`ANYWHERE` also tells in a question. `ORDERS` tells only in sentences that end without a question mark: a question may
speak of rules, modes and makers, an order to the answerer is none.
"""

from __future__ import annotations

import re

from chat.answering.injection_rules import compiled

_BONDS = (
    r"(?:instructions?|directions?|directives|rules?|guidelines?|guidance|restrictions?|limits|limitations|boundaries"
    r"|filters?|safety\s+\w+|safeguards|constraints|configuration|programming|memory|ethics"
    r"|regels|richtlijnen|beperkingen|opdracht(?:en)?|instructies|grenzen|beginopdracht|afspraken)"
)
_YOUR = r"(?:your|jouw|je|uw)"
_OWN = rf"{_YOUR}\s+(?:own\s+|usual\s+|initial\s+|previous\s+|hidden\s+|old\s+|oude\s+|eigen\s+|verborgen\s+)?"
_FIRST = r"(?:^|[,:;.)\]]\s*|\b(?:and|en|then|please|now|first|eerst|daarna|to)\s+)"
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
        rf"{_FIRST}(?:respond|reply|answer|speak|talk|behave|act|reageer|antwoord|praat|gedraag\s+je)\b[^.?!]{{0,40}}"
        r"\b(?:as\s+(?:my|if|though|an?\s+(?!list|table|summary|bullet|short|number|json|csv|markdown|text|whole))"
        r"|als\s+een\s+(?!lijst|tabel)|alsof)",
        rf"{_FIRST}(?:enter|activate|switch\s+(?:in)?to|enable|engage|go\s+into|schakel\s+over\s+naar|activeer)\s+"
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
        rf"{_FIRST}(?:only\s+(?:ever\s+)?)?(?:reply|respond|answer|return|say|antwoord|reageer|zeg)\s+(?:only\s+"
        r"|exclusively\s+|just\s+|always\s+|alleen\s+|uitsluitend\s+|altijd\s+)?(?:with\s+|met\s+)?(?:the\s+(?:single\s+)?"
        r"(?:word|phrase|letter|number)|het\s+woord|nothing\s+but|[\"“«])",
        rf"{_FIRST}(?:end|finish|begin|start|close|conclude|sluit|eindig)\s+(?:each|every|all|your|elke?|ieder|je)\b"
        r"[^.?!]{0,10}\b(?:repl(?:y|ies)|messages?|answers?|sentences?|responses?|bericht|antwoord|zin)\b",
        rf"\b{_YOUR}\s+(?:answer|reply|response|antwoord)\s+(?:must|should|shall|has\s+to|is|will|moet|zal)\b",
        r"\b(?:regardless\s+of|no\s+matter|whatever|welke\s+vraag|wat\s+ik\s+ook)\b[^.?!]{0,60}\b(?:say|your\s+answer"
        r"|reply|zeg|antwoordt?)\b|\bno\s+matter\s+what\s+the\s+(?:documents|sources)\b",
        rf"\b{_OWN}(?:answer|reply|antwoord)\b[^.?!]{{0,15}}\b(?:link|image|picture|afbeelding)\b",
    ),
    "documents": (
        rf"{_FIRST}(?:make\s+up|invent|fabricate|verzin|bedenk)\b[^.?!]{{0,30}}"
        r"\b(?:answer|numbers?|something|antwoord|iets)\b|\bspeculate\b",
        rf"\b(?:from|use|with|gebruik|uit)\s+{_YOUR}\s+(?:own\s+|eigen\s+|general\s+|algemene\s+)*"
        r"(?:knowledge|memory|kennis|geheugen)\b",
        rf"{_FIRST}(?:skip|leave|do(?:n.t|\s+not)\s+(?:bother|use|look)|laat|kijk\s+niet|negeer|forget)\b[^.?!]{{0,20}}"
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
        rf"{_FIRST}(?:never\s+mind|forget(?:\s+about)?|drop|skip|vergeet|sla|let\s+go\s+of)\s+(?:the|this|my|what|de|het)\s+"
        r"(?:question|answer|documents?|you|vraag|antwoord|documenten)\b",
        r"\b(?:instead\s+of\s+(?:an\s+)?answer(?:ing)?|in\s+plaats\s+van\s+(?:een\s+)?antwoord(?:en)?)\b"
        r"|\b(?:before\s+you|first[^.?!]{0,30}then)\s+answer\b|\bthen\s+say\s+who\s+you\b",
        rf"{_FIRST}(?:write|compose|tell|give|sing|schrijf|vertel|maak)\s+(?:me\s+)?(?:\w+\s+){{0,4}}?(?:love\s+)?"
        r"(?:poem|haiku|limerick|song|joke|story\s+about|rap|gedicht|liefdesgedicht|mop|verhaal|lied|malware|phishing|virus"
        r"|explosives|ransomware|fake\s+news)\b",
        r"\b(?:let.?s|let\s+us|laten\s+we)\s+(?:talk|chat|forget|praten|de\s+documenten)\b"
        r"|\bchat\s+(?:with\s+me|freely)\b|\bpraat\s+vrijuit\b|\bstop\s+being\b",
    ),
    "send": (
        r"\b(?:other\s+(?:people|users|visitors)|(?:person|user)\s+before\s+me|previous\s+user|andere\s+gebruikers"
        r"|vorige\s+gebruiker)\b[^.?!]{0,30}\b(?:asked|vroeg|vroegen|gesteld)\b",
        rf"{_FIRST}(?:append|include|add|put|show|insert|encode|send|post|forward|zet|stuur|mail|voeg)\b[^.?!]{{0,50}}"
        r"\b(?:sources|conversation|chat|gesprek|bronnen|question)\b[^.?!]{0,40}(?:\blink\b|https?:|@|\bimage\b|address)",
        rf"{_FIRST}(?:append|include|add|put|show|insert|zet|voeg)\b[^.?!]{{0,30}}\b(?:link|image|picture|afbeelding)\b"
        r".{0,80}\b(?:sources|conversation|question|chat|bronnen|gesprek)\b",
        r"\bapi[\s-]*key\s+that\s+you\b",
    ),
}


COMPILED_ANYWHERE = compiled(ANYWHERE, re.IGNORECASE | re.DOTALL)
COMPILED_ORDERS = compiled(ORDERS, re.IGNORECASE | re.DOTALL)
