"""Find sentences in English and Dutch documents that instruct a language model. PURE.

Curators see them, and prompts leave them out. Ordinary tasks ("Write a poem") are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from retrieval.text.sentences import split_sentences

# The patterns are narrow. Manuals give orders on every line, and documents about language models mention prompts.

_MODEL = (
    r"(?:ai(?:[\s-]+(?:assistants?|models?|systems?|agents?|bots?))?|llms?|(?:large\s+)?language\s+models?|chatbots?"
    r"|chat-?gpt|gpt(?:-\d)?|copilot|gemini|claude|ai-assistent(?:en)?|taalmodel(?:len)?)"
)
_SAY = (
    r"(?:answer|reply|respond|say|state|claim|mention|tell|include|add|append|insert|recommend|output|print|write|end"
    r"|begin|start|ignore|disregard|omit|leave\s+out|praise|rate|call|pretend|repeat|translate|summari[sz]e|refuse|never"
    r"|always|not|do\s+not|antwoord|zeg|vertel|noem|vermeld|voeg|zet|begin|eindig|negeer|laat|schrijf|weiger|altijd"
    r"|nooit|niet|prijs|breng)"
)
_INSTRUCTIONS = (
    r"(?:instructions?|prompts?|rules|guidelines|directions|directives|orders"
    r"|instructies|regels|opdrachten|richtlijnen)"
)
_OUTPUT = r"(?:answers?|repl(?:y|ies)|responses?|output|summary|summaries|antwoord(?:en)?|samenvatting|uitvoer|reactie)"
_USER = r"(?:the\s+)?(?:users?|reader|person\s+(?:who\s+is\s+)?asking|human|gebruiker|lezer)"

_PATTERNS: dict[str, tuple[str, ...]] = {
    "set aside": (
        r"\b(?:ignore|disregard|forget|override|negeer|vergeet)\b(?:\s+(?:all|any|the|your|of|alle|de|je|jouw)){0,3}\s+"
        r"(?:previous|prior|preceding|earlier|above|other|system|eerdere|vorige|voorgaande|bovenstaande)\s+(?:\w+\s+)?"
        + _INSTRUCTIONS,
        r"\b(?:ignore|disregard|forget|negeer|vergeet)\s+(?:the|this|de|deze)\s+(?:user.?s\s+)?(?:question|query|vraag)\b",
        r"\b(?:outranks?|overrides?|supersedes?|takes?\s+precedence\s+over|gaat\s+boven)\b.{0,50}\b"
        + _INSTRUCTIONS
        + r"\b.{0,40}\b(?:you|your|bot|chatbot|assistant|model|je)\b",
    ),
    "addressed": (
        rf"\b{_MODEL}\b.{{0,25}}\b(?:must|should|shall|has\s+to|have\s+to|are\s+to|is\s+to|please|need\s+to|moet(?:en)?"
        rf"|dien(?:t|en)\s+te)\s+(?:\w+\s+){{0,2}}?{_SAY}\b",
        rf"(?:^|[.]\s{{1,4}})\W{{0,4}}(?:note|message|instructions?|attention|important|notice|hey|dear|hello|to|hint|let\s+op"
        rf"|aan|beste|hallo|opmerking|bericht)\b[\s,]*+(?:\w++\s++){{0,3}}?(?:to|for|voor|aan)?\s*(?:all\s+|any\s+|the\s+|alle\s+"
        rf"|de\s+)?{_MODEL}\b\s*[:,!-]",
        rf"\b(?:if|als)\s+(?:you|je|u)\s+(?:are|ben(?:t)?)\s+(?:an?\s+|een\s+)?{_MODEL}\b",
        rf"\b(?:any|every|each|elk|ieder)\s+{_MODEL}\s+(?:that|which|reading|who|dat|die)\b",
        r"\byou(?:\s*+,)?\s++(?:the\s++)?(?:ai|assistant|chatbot|language\s+model)\s*,",
    ),
    "answer": (
        r"\b(?:(?:when(?:ever)?|before|while|if)\s+you\s+(?:are\s+)?(?:answer|reply|respond|summari[sz]e|asked)"
        r"|(?:when(?:ever)?|before|while)\s+(?:answering|replying|responding(?!\s+to\s+an?\b)|summari[sz]ing))\b.{0,70}"
        r"\b(?:also|always|add|include|say|state|mention|leave\s+out|omit|recommend|tell|end|begin|never|do\s+not|don.t"
        r"|answer|reply)\b",
        r"\b(?:als|wanneer|voordat)\s+(?:je|u)\b.{0,40}\b(?:antwoord(?:t|en)?|samenvat|beantwoordt?)\b.{0,60}\b(?:zeg|noem"
        r"|vermeld|laat|voeg|zet|dan|ook|altijd|nooit)\b",
        rf"\b(?:your|je|jouw)\s+(?:next\s+|final\s+|entire\s+|volgende\s+)?{_OUTPUT}\s+(?:must|should|shall|has\s+to|is|may"
        rf"|will|moet|mag|dient|zal)\b",
        rf"\b(?:begin|start|end|finish|preface|conclude|add|append|include|insert|put|zet|voeg|begin|eindig)\b.{{0,60}}\b(?:to|in"
        rf"|into|of|at\s+the\s+end\s+of|aan|in|van)?\s*(?:your|each|every|all|je|jouw|elk|ieder)\s+{_OUTPUT}\b",
        rf"\bin\s+(?:your|each|every|je|jouw|elk)\s+{_OUTPUT}\b.{{0,40}}\b{_SAY}\b|\bthe\s+rest\s+of\s+your\s+{_OUTPUT}\b"
        rf"|\bde\s+rest\s+van\s+je\s+{_OUTPUT}\b",
        rf"\b(?:if|when(?:ever)?|als|wanneer)\s+(?:{_USER}|(?:some|any)one|iemand|(?:you\s+are\s+)?asked)\b.{{0,60}}\b"
        rf"(?:respond|reply|answer|say|claim|pretend|antwoord|zeg)\s+(?:that|it|with|only|dan\s+dat|dat|dan)\b",
        r"\b(?:refuse|decline|weiger)\b.{0,30}\b(?:question|vraag|vragen)\b|\btell\s+(?:whoever|everyone\s+who|anyone\s+who)"
        r"\s+asks\b",
        r"^(?:respond|reply|answer|antwoord|reageer)\s+(?:only\s+|from\s+now\s+on\s+|alleen\s+)?(?:in|with|met)\b",
    ),
    "conceal": (
        rf"\b(?:do\s+not|don.t|never|without)\s+(?:tell|inform|mention|reveal|show|disclose|let|tell|alert|warn)(?:ing)?\b.{{0,40}}"
        rf"\b(?:{_USER}|this\s+(?:note|text|instruction|message|sentence)|these\s+instructions)\b",
        r"\b(?:vertel|meld|zeg|noem|toon)\b.{0,20}\b(?:gebruiker|lezer|opmerking|instructie)\b.{0,10}\bniet\b",
        rf"\b(?:keep|houd)\b.{{0,30}}\b(?:hidden|secret|invisible|verborgen|geheim)\s+(?:from|voor)\s+{_USER}\b",
    ),
    "send": (
        r"\b(?:send|post|forward|upload|transmit|append|submit|e?mail|enter|stuur|verstuur|mail|voeg)\b.{0,60}\b(?:conversation"
        r"|chat|user.?s|question|answers|api\s+keys?|passwords?|context|system\s+prompt|gesprek|vraag|gebruiker)\b.{0,60}"
        r"(?:https?:|www\.|@|\bto\s+the\s+address\b)",
        r"\]\(\s*https?://[^\s)?]{1,300}\?[^\s)]{0,200}(?:\[|\{|<|conversation|question|prompt|secret|context|gesprek|chat)",
        r"\b(?:insert|show|include|add|render|display|zet|toon)\b.{0,30}\b(?:link|image|picture|afbeelding|plaatje)\b.{0,80}https?:",
        r"\b(?:use|call|open|invoke|gebruik|roep)\b.{0,12}\b(?:your|je|jouw)\s+(?:\w+\s+)?(?:tool|browser|plugin|search|function"
        r"|zoekfunctie|browser)\b",
    ),
    "role": (
        r"\b(?:from\s+now\s+on|vanaf\s+nu)\b.{0,10}\b(?:you|je|jij)\b",
        r"\byou\s+are\s+now\s+(?:\w+\s+){0,3}?(?:bot|ai|assistant|mode|dan|gpt)\b|\byou\s+are\s+now\s+in\s+\w+\s+mode\b",
        r"\b(?:act|behave|pretend|answer|write)\b.{0,30}\b(?:in\s+the\s+style\s+of\s+an?|as\s+if\s+you\s+were\s+an?\s+(?:ai|bot|assistant"
        r"|unrestricted))\b|\bin\s+de\s+stijl\s+van\s+een\s+piraat\b",
    ),
    "reveal": (
        r"\b(?:print|show|reveal|repeat|output|display|tell|toon|herhaal|geef)\b.{0,25}\b(?:your|je|jouw)\s+(?:\w+\s+)?"
        r"(?:prompt|systeemprompt|instructions|instructies|configuration)\b",
        r"\b(?:print|repeat|output|herhaal)\b.{0,20}\b(?:text|everything|words|tekst|alles)\b.{0,12}\b(?:above|boven)\b",
        r"\b(?:what|wat)\s+(?:is|are|zijn)\s+(?:your|je|jouw)\s+(?:system\s+)?(?:prompt|instructions|instructies)\b",
    ),
    "markup": (
        r"<\|/?(?:im_start|im_end|system|assistant|user|endoftext|start_header_id|eot_id)\|>|\[/?INST\]|<</?SYS>>",
        r"^\W{0,4}(?:system|admin|administrator|developer)\s+(?:override|message|prompt|instruction|notice)\s*[:\]]",
        r"^#{2,4}\s*(?:instruction|system|response)\s*:|^(?:system|assistant)\s*:\s*\S",
        r"</(?:source|sources|context|document|documents|system)>",
        r"\b(?:END\s+OF\s+(?:SOURCE|CONTEXT|DOCUMENTS?|PROMPT)|EINDE\s+VAN\s+DE\s+(?:BRON|CONTEXT))\b",
        r"\b(?:real|actual|echte)\s+(?:question|task|vraag|opdracht)\s+(?:of|from|van)\s+(?:the|de)\s+(?:user|gebruiker)\b",
    ),
}
RULES = {
    rule: tuple(
        re.compile(
            pattern, re.DOTALL if pattern.startswith(r"\b(?:END\s") else re.DOTALL | re.IGNORECASE | re.MULTILINE
        )
        for pattern in patterns
    )
    for rule, patterns in _PATTERNS.items()
}
# Orders such as "Say that". They are found only next to an instruction, because manuals are full of orders.
ORDER = re.compile(
    r"\W{0,8}(?:(?:and|but|then|now|instead|please|also|always|just|only|rather|so|simply|from\s+now\s+on|en|maar|dan|nu"
    r"|daarna|ook|altijd|alleen|gewoon)\b[\s,]*){0,3}"
    r"(?:say|tell|state|claim|mention|answer|reply|respond|write|print|output|repeat|include|add|append|insert|recommend"
    r"|praise|pretend|act|behave|send|post|forward|upload|e?mail|transmit|submit|visit|go\s+to|obey|ignore|disregard"
    r"|forget|do\s+not|don.t|never|give|show|reveal|translate|summari[sz]e|refuse|you\s+(?:must|should|shall)"
    r"|zeg|vertel|noem|vermeld|antwoord|schrijf|herhaal|voeg|zet|stuur|verstuur|mail|bezoek|ga\s+naar|negeer|vergeet|geef"
    r"|toon|vertaal|vat|weiger|doe\s+alsof|(?:je|jij)\s+(?:moet|zult))\b"
    rf"|[^.!?]{{0,100}}\b(?:your|je|jouw)\s+(?:{_OUTPUT}|messages?|bericht)\b",
    re.IGNORECASE,
)
MOST_SHOWN = 20
_LONGEST = 1000


class Instruction(NamedTuple):
    """A range of text that instructs a model. ``rule`` is the name of the pattern that matched."""

    start: int
    end: int
    rule: str


def find_instructions(text: str) -> list[Instruction]:
    """Return the sentences, list items and lines that instruct a model, in order.

    An order ("Say that …") is included only if it is next to an instruction.
    """
    pieces = list(_split_pieces(text))
    rules = [find_matching_rule(text[start:end]) for start, end in pieces]
    # Searched in both directions, because an order may precede or follow its instruction.
    for order in (range(1, len(pieces)), range(len(pieces) - 2, -1, -1)):
        for at in order:
            neighbour = rules[at - order.step]
            if neighbour and not rules[at] and ORDER.match(text, *pieces[at]):
                rules[at] = neighbour
    return [Instruction(*piece, rule) for piece, rule in zip(pieces, rules, strict=True) if rule]


def find_matching_rule(sentence: str) -> str:
    return next((rule for rule, patterns in RULES.items() if any(each.search(sentence) for each in patterns)), "")


def remove_instructions(text: str, replacement: str) -> str:
    kept = []
    begin = 0
    for found in find_instructions(text):
        kept += [text[begin : found.start], replacement]
        begin = found.end
    return "".join([*kept, text[begin:]])


def _split_pieces(text: str) -> Iterator[tuple[int, int]]:
    for start, end, _break in split_sentences(text, 0, len(text)):
        for begin in range(start, end, _LONGEST):
            yield begin, min(end, begin + _LONGEST)
