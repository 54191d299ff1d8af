"""The kind of a question, by patterns in English and Dutch. PURE.

- comparison: weighs things against each other, also functions or faults;
- troubleshooting: a symptom, an error message, an error code, a repair;
- code: code, its syntax, an interface or command, an identifier. Everyday nouns ("function of the liver", "class
  action", "import duties") are code only beside a sign of programming;
- conceptual: explains what something is, why, or how it works, including programming's ideas;
- default: facts, look-ups, steps, keywords, part numbers (they name a thing, not code).

The first matching rule decides, most specific first. The rules were written on the tuning half of
`query_classes.jsonl`; `docs/quality.md` has their accuracy on the other half. Classes and weights follow a published
textbook-chatbot design.
"""

from __future__ import annotations

import re

from retrieval.types import Classification, QueryClass

# Gaps are bounded (`.{0,60}`) and no repetition contains another that could match the same text: no hostile question
# takes long. Words need word boundaries: "terror" is no "error".

# These rules need the typed capitals, which distinguish identifiers and error messages from words.
AS_TYPED = frozenset({"error message", "identifier"})

_PRODUCT = (
    r"(?!(?:Java|Type)Script\b|(?:Git|Web)Hub\b|PayPal\b|YouTube\b|WhatsApp\b|LinkedIn\b|PowerPoint\b|WordPress\b"
    r"|SharePoint\b|OneDrive\b|OneNote\b|FaceTime\b|Mc[A-Z]|Mac[A-Z]|WiFi\b|BlueTooth\b)"
)
_LANGUAGE = (
    r"(?:python|java|javascript|typescript|c\+\+|c#|rust|golang|php|matlab|numpy|pandas|pytorch|react|html|css|sql"
    r"|sqlite|xpath|bash|powershell|cmake|latex)"
)
# After "what is the", these nouns ask for a value, not an explanation.
_ATTRIBUTE = (
    r"(?:number|address|price|prices|cost|costs|fee|fees|rate|rates|deadline|date|time|times|hours|weight|height|width"
    r"|length|size|capacity|maximum|minimum|voltage|power|temperature|pressure|limit|limits|name|names|salary|amount"
    r"|percentage|duration|dose|dosage|budget|phone|email|e-mail|url|website|location|age|speed|range|password|version)"
)
_ATTRIBUUT = (
    r"(?:nummer|\w*nummer|\w*adres|prijs|prijzen|kosten|tarief|tarieven|datum|tijd|\w*tijden|uren|gewicht|hoogte"
    r"|breedte|lengte|afmeting|afmetingen|capaciteit|maximum|maximale|minimum|minimale|spanning|vermogen|temperatuur"
    r"|druk|limiet|naam|namen|salaris|percentage|bedrag|duur|dosering|budget|locatie|leeftijd|snelheid|bereik"
    r"|\w*termijn)"
)

PATTERNS: tuple[tuple[str, QueryClass, tuple[str, ...]], ...] = (
    (
        "comparison words",
        QueryClass.COMPARISON,
        (
            r"\b(?:differences?|differ|differs|compare|compares|compared|comparing|comparison|versus|vs|contrast)\b",
            r"\bdifferent (?:from|than|to)\b|\b(?:similarity|similarities|in common|stack up|relative merits)\b",
            r"\b(?:pros and cons|(?:dis)?advantages and (?:dis)?advantages|trade-?offs?)\b",
            r"\b(?:distinction between|distinguish\w*|sets? .{1,60} apart|alternatives? (?:to|for)|rather than)\b",
            r"\b(?:prefer|choose|pick|favour|favor)\b.{1,60}\b(?:to|over|or|between)\b|\b(?:pick|choose"
            r"|choice) between\b",
            r"\b(?:are|is|do|does)\b.{1,60}\bthe same\b|\b(?:changed|changes) between\b|\binstead of\b",
            r"\b(?:verschil|verschillen|verschilt|vergelijk|vergelijken|vergelijking|vergeleken|tegenover"
            r"|ten opzichte van)\b",
            r"\b(?:onderscheid|onderscheidt|onderscheiden|gemeen|alternatie(?:f|ven) voor|in plaats van"
            r"|evenveel|evengoed)\b",
            r"\b(?:voor- en nadelen|voordelen en nadelen|overeenkomst(?:en)? tussen|(?:kies|kiest|kiezen"
            r"|keuze) tussen)\b",
            r"\b(?:zijn|is|doen|doet)\b.{1,60}\b(?:hetzelfde|gelijk)\b|\bveranderd tussen\b|\blijk(?:t"
            r"|en)\b.{1,40}\bop\b",
            r"\bverkiez\w+\b.{1,60}\bboven\b|\bkies\w*\b.{1,60}\bof\b|\bverhoud(?:t|en) (?:\w+ ){0,4}tot\b"
            r"|\btot elkaar\b",
        ),
    ),
    (
        "comparative",
        QueryClass.COMPARISON,
        (
            r"\b(?:more|less|fewer) \w+ (?:\w+ ){0,3}than\b",
            r"\b(?!other|rather|later|older|never|over)\w+er (?:\w+ ){0,3}than\b(?! \d)",
            r"\b(?:which|what) (?:one )?of (?:the|these|those) (?:two|three|four|both)\b",
            r"\b(?:meer|minder) \w+ (?:\w+ ){0,3}dan\b|\b(?!eerder|ander|verder|later|ouder"
            r"|over)\w+er (?:\w+ ){0,3}dan\b(?! \d)",
            r"\bbeter\b.{1,60}\bof\b|\bwelke? van (?:de|deze|die) (?:twee|drie|vier|beide)\b",
        ),
    ),
    (
        "alternatives",
        QueryClass.COMPARISON,
        (
            r"\b(?:which|what)\b.{1,80}[,:] .{1,60}\bor\b",
            r"\b(?:should|shall) (?:i|we|you|one)\b.{1,80}\bor\b|\bdo (?:i|we) need\b.{1,60}\bor (?:is|are|does"
            r"|will|would)\b",
            r"^(?!(?:who|what|when|where|which|why|how|can|is|are|do|does"
            r"|list)\b)(?:[^ ]+ ){1,3}or (?:[^ ]+ ){1,3}(?:for|when|to|as)\b",
            r"\b(?:welke?|wat)\b.{1,80}[,:] .{1,60}\bof\b|\b(?:moet|zal|zou) (?:ik|we|je|u)\b.{1,80}\bof\b",
            r"^(?!(?:wie|wat|wanneer|waar|welke?|waarom|hoe|kan|is|zijn"
            r"|mag)\b)(?:[^ ]+ ){1,3}of (?:[^ ]+ ){1,3}(?:voor|bij|om|als)\b",
        ),
    ),
    (
        "error message",
        QueryClass.TROUBLESHOOTING,
        (
            r"\b(?:[A-Z]\w*(?:Error|Exception|Warning)|Traceback|Errno)\b|\b0x[0-9a-fA-F]{2,}\b",
            r"\b(?:E|ERR|LNG|ORA|HTTP|SQLSTATE)[-_ ]?\d{2,5}\b",
            r"\b(?:[Ee]rror|[Ff]ault|[Aa]larm|[Ss]toring|[Ff]out)(?:[Cc]ode)? [A-Z]{0,4}-?\d+\b|\bexit(?:ed"
            r"|s)? \w+ code \d+",
        ),
    ),
    (
        "definition",
        QueryClass.CONCEPTUAL,
        (
            r"^what (?:is|are) (?:an? )?(?!the\b|an?\b|my\b|our\b|your\b|wrong\b|this\b|that\b|these\b|going\b"
            r"|there\b)"
            r"[^\s\d_.,:`()]+(?: [^\s\d_.,:`()]+){0,5}$",
            r"^wat (?:is|zijn) (?:een )?(?!de\b|het\b|een\b|er\b|mijn\b|onze\b|uw\b|je\b|dit\b|dat\b|deze\b|hier\b)"
            r"[^\s\d_.,:`()]+(?: [^\s\d_.,:`()]+){0,5}$",
        ),
    ),
    (
        "question of count or person",
        QueryClass.DEFAULT,
        (
            r"^(?:who|whose|whom|how (?:many|much|long|often|old|tall|far|big|large|heavy|high|late|soon))\b",
            r"^(?:wie|wiens|hoe (?:veel|lang|vaak|oud|ver|groot|hoog|zwaar|laat|duur|snel|breed)|hoeveel)\b",
        ),
    ),
    (
        "error words",
        QueryClass.TROUBLESHOOTING,
        (
            r"\b(?:errors?|exception|traceback|stack ?trace|crash\w*|fail|fails|failed|failing|failure|broken"
            r"|bug|debug\w*)\b",
            r"\b(?:troubleshoot\w*|malfunction\w*|fix|fixes|fixed|fixing|repair\w*|problems?|issue with"
            r"|issues with|faulty|defective)\b",
            r"\b(?:denied|refused|rejected|corrupt\w*|damaged|interrupted|invalid|unexpected\w*|undefined"
            r"|unsupported)\b",
            r"\b(?:fout|fouten|foutcode|foutmelding\w*|storing\w*|mislukt\w*|kapot|defect|crasht?e?n?|gecrasht"
            r"|probleem|problemen)\b",
            r"\b(?:geweigerd|afgewezen|beschadigd\w*|onderbroken|ongeldige?|onverwachte?|geblokkeerd|onvoldoende)\b",
        ),
    ),
    (
        "negated expectation",
        QueryClass.TROUBLESHOOTING,
        (
            # After who, that, which a negation distinguishes things; it is no complaint.
            r"(?<!\bwho )(?<!\bthat )(?<!\bwhich )\b(?:is|are|was|does|do|did|has|have|will|would|could|can) not \w+",
            r"(?<!\bwho )(?<!\bthat )(?<!\bwhich )\b(?:is|are|was|does|do|did|has|have|wo|would|could|ca)n't\b"
            r"|\bcannot\b",
            r"\b(?:unable to|not (?:working|found|responding)|no longer|never (?:\w+s|came|arrived)"
            r"|nothing happens)\b",
            r"\bwhy (?:is|are|do|does) (?:there|i get|i see|we get) no\b|\bwithout (?:an? )?(?:reason|message"
            r"|warning)\b",
            r"\b(?:werkt|doet|doen|gaat|gaan|komt|lukt|kan|kunnen|wil|start|opent|sluit|beweegt|reageert|laadt|houdt"
            r"|verschijnt|vindt|wordt|worden|krijg|zie|druk|slaat"
            r"|print)\b.{0,40}(?<!\bdie )(?<!\bdat )\b(?:niet|niets|nooit)\b",
        ),
    ),
    (
        "symptom",
        QueryClass.TROUBLESHOOTING,
        (
            r"\b(?:keeps?|kept) \w+ing\b|\bkeeps? (?:\w+ ){1,3}\w+ing\b|\bstays? (?:black|blank|dark|empty|cold"
            r"|off|on|red)\b",
            r"\b(?:stuck|hangs?|freezes?|frozen|leak\w*|overheat\w*|jam|jams|jammed|jamming|disappear\w*"
            r"|vanish\w*|forgot|forgotten)\b",
            r"\b(?:rattl\w+|nois[ey]\w*|squeak\w*|smells?|shak(?:es|ing)|vibrat(?:es|ing)|flashing|blink\w*"
            r"|flicker\w*|beep\w*|drip\w*)\b",
            r"\b(?:stop|stops|stopped|switch off|shut down|restart|restarts) (?:after|when|during|while|mid"
            r"|halfway|by itself)\b",
            r"\b(?:far |much |way )?too (?:high|low|slow|hot|cold|loud|weak|little)\b|\bwrong (?:number|amount"
            r"|value|name|result|date)\b",
            r"\b(?:reading|value) of (?:zero|0)\b|\b(?:blank|black) (?:screen|page)\b|\bcomes? back empty\b"
            r"|\bget rid of\b|\bdrains\b",
            r"\bwaarom\b.{0,20}\b(?:mijn|ik)\b|\b(?:gaat|ging|is er|er iets) mis\b|\bwat (?:is er|er is) (?:mis"
            r"|aan de hand)\b",
            r"\bblij(?:ft|ven) (?:\w+ ){0,2}(?:\w+en|zwart|leeg|donker|koud|uit|aan|rood)\b|\b(?:steeds|telkens"
            r"|plotseling|ineens)\b",
            r"\b(?:loopt|zit|blijft|gelopen) (?:\w+ ){0,2}vast\b|\b(?:vastloopt|vastgelopen|vastlopen|hapert"
            r"|stuk|lekt|lekken|lekkage|piept|piepen|knippert|trilt|rammelt|bromt|druppelt?)\b",
            r"\b(?:verdwenen|vergeten|kwijt|verliest|verloren|halverwege|oververhit\w*|alweer|verkeerde?)\b"
            r"|\b(?:slaat|valt)\b.{1,40}\b(?:af|uit|weg)\b",
            r"\b(?:veel )?te (?:hoge?|lage?|hete?|trage?|langzaam|koude?|weinig|luid)\b|\b(?:vreemde?"
            r"|rare) (?:geur|geluid|lucht)\b|\bwijkt\b.{0,20}\baf\b",
        ),
    ),
    (
        "identifier",
        QueryClass.CODE,
        (
            r"`[^`]{1,200}`|\b\w+_\w+|\b\w+::\w+|\b\w{1,60}\((?!e?s\)|en\)|n\))[^()]{0,80}\)",
            r"\b[a-z][a-z0-9]+[A-Z]\w*\b",
            rf"\b{_PRODUCT}(?:[A-Z][a-z]+){{2,}}\b",
            r"(?<![\w-])--[a-z][\w-]+|(?<=\s)-[a-zA-Z](?!\S)",
            r"\b[\w-]{1,60}\.(?:py|js|ts|java|c|cpp|h|hpp|rs|go|json|ya?ml|toml|ini|conf|sh|sql|xml)\b"
            r"|(?<!\S)/(?:etc|usr|var|opt|bin|home)/",
            r"(?<![@\w./])[a-z]\w+\.(?!com\b|org\b|net\b|nl\b|eu\b|be\b|de\b|io\b|info\b|gov\b|edu\b)[a-z]\w+\b(?!@)",
        ),
    ),
    (
        "programming words",
        QueryClass.CODE,
        (
            rf"\b{_LANGUAGE}(?!\w)",
            r"\b(?:apis?|sdk|cli|regex|regexp|regular expressions?|curl|git|docker|kubectl|pip|npm|json|yaml"
            r"|snippets?|syntax)\b",
            r"\b(?:endpoints?|callbacks?|constructors?|iterators?|decorators?|one-liner|unit ?tests?"
            r"|command[- ]line|source code)\b",
            r"\b(?:environment variables?|header files?|code (?:sample|example|snippet)s?|event handlers?"
            r"|return values?|async)\b",
            r"\b(?:reguliere expressies?|syntaxis|codevoorbeeld\w*|broncode|opdrachtregel|omgevingsvariabelen?"
            r"|retourwaarde)\b",
            r"\b(?:sleutelwoord|programmeer\w*|implementeer\w*|headerbestand\w*|variabelen?|\w+-statement"
            r"|\w+-script|api-\w+)\b",
        ),
    ),
    (
        "words of code in company",
        QueryClass.CODE,
        (
            r"\b(?:define|declare|override|overload|implement|instantiate|inherit|call|write|invoke|import"
            r"|initiali[sz]e|subclass)\b"
            r".{1,40}\b(?:class|classes|functions?|methods?|variables?|constants?|modules?|loops?|scripts?"
            r"|interface|grammar)\b",
            r"\b(?:definieer|declareer|overschrijf|implementeer|schrijf|importeer|initialiseer|roep)\b"
            r".{1,40}\b(?:klasse|klassen|functies?|methoden?|variabelen?|constanten?|modules?|lus|lussen|script"
            r"|interface|argument)\b",
            r"\b(?:functies?|methoden?|klasse|commando|opdracht)\b.{1,40}\b(?:array|string|lijst|object|module"
            r"|commit|bestand\w*|commandline|server)\b",
        ),
    ),
    (
        "fact words",
        QueryClass.DEFAULT,
        (
            rf"^what (?:is|are|was|were|'s) (?:the|my|our|your) (?:[^ ]+ ){{0,2}}{_ATTRIBUTE}\b",
            rf"^wat (?:is|zijn|was|waren) (?:de|het|mijn|onze|uw|je) (?:[^ ]+ ){{0,2}}{_ATTRIBUUT}\b"
            rf"|^wat is de uiterste\b",
            r"^(?:when (?!would\b)|where|list|name|steps|waar (?!om)|wanneer|noem|stappen|lijst)\b",
        ),
    ),
    (
        "how-to words",
        QueryClass.DEFAULT,
        (
            r"^how (?:(?:do|can|should|could|must|would|may) (?:i|we|you|one)|to)\b",
            r"^hoe (?!komt het)\w+ (?:ik|je|jij|u|we|wij|men)\b",
        ),
    ),
    (
        "concept words",
        QueryClass.CONCEPTUAL,
        (
            r"^(?:what (?:is|are|was|were|does|do|happens|causes|makes|role|kind of)|why|how (?:does|do|did|is"
            r"|are|was|were|come))\b",
            r"\b(?:explain\w*|describe|define|definition|tell me (?:about|what|why|how)|understand\w*|mean"
            r"|meaning|meant)\b",
            r"\b(?:concept|principle|purpose|overview|introduction|theory|idea (?:behind|of)|in simple (?:words"
            r"|terms)|causes? of)\b",
            r"^(?:wat (?:is|zijn|was|waren|betekent|betekenen|houdt|houden|gebeurt|maakt|doet|verstaa\w+|wordt"
            r"|veroorzaakt)|waarom|waardoor|waartoe)\b",
            r"^(?:hoe|op welke (?:manier|wijze)|welke rol|in hoeverre)\b|\bwat \w+ (?:\w+ )?(?:is|zijn)$",
            r"\b(?:leg\b.{1,80}\buit|uitleg\w*|beschrijf|omschrijf|vertel|definitie|betekenis|begrip|begrijpen"
            r"|overzicht|principe|beginsel)\b",
            r"\b(?:theorie|inleiding|doel van|nut van|idee (?:achter|van)|oorza(?:ak|ken) van)\b|^leg uit\b",
        ),
    ),
)

NO_PATTERN = "no pattern"
# The beginning contains the question; the rest is quoted material and would only cost time.
CHARACTERS_READ = 1000


RULES = tuple((name, query_class, re.compile("|".join(alternatives))) for name, query_class, alternatives in PATTERNS)


def classify(question: str) -> Classification:
    """Return the class and the deciding rule; `default` and "no pattern" if none matches.

    Only the first 1,000 characters count; the time is at most linear.
    """
    typed = " ".join(question[:CHARACTERS_READ].split()).replace("’", "'")
    lowered = typed.lower()
    for rule, query_class, pattern in RULES:
        if pattern.search(typed if rule in AS_TYPED else lowered):
            return Classification(query_class, rule)
    return Classification(QueryClass.DEFAULT, NO_PATTERN)
