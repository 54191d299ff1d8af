"""The kind of a question and of the value it asks for, told by its wording. PURE.

The kinds follow the coarse classes of Li and Roth, "Learning Question Classifiers", COLING 2002, extended by those that
a manual is asked for (procedure, list, yes or no).
"""

from __future__ import annotations

import re

from chat.questions.expected import TIME_UNIT, expected_value
from chat.questions.types import QuestionKind, ValueKind
from chat.questions.wording import AUXILIARY, PRONOUN, WH, verbose_pattern

_REASON = verbose_pattern(
    r"^(?:so\ )?why\b | \bhow\ come\b | ^waarom\b | ^hoezo\b | \bwaardoor\b | \b(?:for\ )?(?:what|which)\ reasons?\b"
    r"| \breasons?\ (?:for|why|behind|that|of)\b | \bwhat\ (?:causes?|caused)\b | \b(?:reden(?:en)?|oorzaak)\b "
    r"| , ?why\b"
)
_COMPARED = (
    r"(?:bigg|small|larg|heav|light|high|low|old|young|cheap|long|short|fast|slow|strong|weak|warm|cold|wid|deep"
    r"|great|hard|eas|earl|lat|saf|quick|tall|thick|thin)"
)
_COMPARED_DUTCH = (
    r"(?:zwaar|licht|duur|goedkop|grot|klein|hog|lag|oud|jong|lang|kort|snell|langzam|bred|warm"
    r"|koud|sterk|zwakk|veilig|vroeg|lat)"
)
_COMPARISON = verbose_pattern(
    rf"^{AUXILIARY}(?=[^,]*\ or\ )[^,]+\ (?:more|less|fewer|{_COMPARED}i?er)\b | \bfirst,?\ [^?]+\ or\ |"
    r"\bcompar(?:e|ed|ing|ison\ (?:of|between))\b | \bdifferences?\ (?:\w+\ )*?(?:between|with|from)\b | \b(?:vs"
    r"|versus)\b"
    r"| \bdiffers?\b | \bdifferent\ from\b | \bverschil(?:len|t)?\b | \bvergelijk\w* | \bof\ the\ two\b "
    r"| \bvan\ de\ twee\b"
    rf"| \b(?:more|less|fewer|better|worse|{_COMPARED}i?e?r)\b(?:(?!\ or\ (?:more|less|fewer)\b)[^.?])*\ or\ [^.?]+"
    rf"| \b(?:meer|minder|beter|slechter|{_COMPARED_DUTCH}d?e?r)\b,?\ [^.?]+\ of\ (?!meer|minder)[^.?]+"
)
# "better than": of two things, unless the other is a number ("more than 12 litres").
_THAN = verbose_pattern(rf"^{AUXILIARY}\b.*\b(?:than|dan)\b(?!\ (?:\d|a\b|an\b|one\b|een\b))")
_SUPERLATIVE = verbose_pattern(
    r"\b(?:the|which|what|whats|what's|with|has|have|de|het|welke?|met)\ (?:\w+\ ){0,3}?"
    r"  (?:most|least|fewest|meeste|minste|(?!(?:for|inter|requ|cont|harv|manif|sugg|hon|mod|prot|dig|gu|arr|inv|cr"
    r"|qu|ch|conqu|unr|t|w|b|n|p|r|v|j|z)est)\w{2,}est"
    r"  |best|newest|worst|beste|largest|biggest|longest|shortest|tallest|nearest|richest|poorest|busiest|tightest"
    r"  |(?:hoog|laag|groot|klein|duur|goedkoop|zwaar|licht|lang|kort|oud|jong|nieuw|druk|snel|ver|dicht"
    r"|vroeg)\w*ste)\b"
    r"| ^(?:most|least|fewest|highest|lowest|cheapest|largest|biggest|smallest|longest|shortest|heaviest|lightest"
    r"|best|worst"
    r"  |oldest|youngest|newest)\b | \b(?:cheapest|heaviest|lightest|goedkoopste|duurste|zwaarste|lichtste)\b"
)
_NOT_SUPERLATIVE = verbose_pattern(
    r"\b(?:at\ (?:least|most)|most\ (?:of|people|\w+ly)|best\ practices?|ten\ minste"
    r"|(?:largest|greatest|biggest|most)\ (?:part|share)|grootste\ deel"
    r"|(?:of|van)\ (?:the|de|het)\ (?:\w+\ )?(?:\w{3,}est|\w{3,}ste))\b"
)
_COUNT = verbose_pattern(
    rf"\bhow\ man(?:y|ny)\b(?!\ (?:\w+\ )?{TIME_UNIT}\b) | (?:^|\bthe\ |\btotal\ )number\ of\b "
    rf"| \bhoeveel\b(?!\ (?:geld|tijd|kost|procent))"
    r"  (?!\s(?:is|was|wordt|zijn|bedraagt|krijg|betaal|moet|mag|kan|kun|weegt)\b) | \baantal\b | ^count\b "
    r"| \bhow\ much\ many\b"
)
_MEASURE = verbose_pattern(
    rf"\b(?:how\ many|hoeveel)\ (?:\w+\ )?(?:{TIME_UNIT}|percent|procent|%|dollars?|euros?|pounds?|degrees|graden|"
    r"met(?:er|re)s?|kilomet(?:er|re)s?|miles?|feet|lit(?:er|re)s?|kilo\w*|gram\w*|tons?|square|tokens|bytes"
    r"|[mgk]b|times|"
    r"keer|punten|points|hectares?|acres)\b"
)
_CODE = verbose_pattern(
    r"\b(?:command|commando|arn|snippet|regex|syntax|cli|curl|endpoint|sql\ query|code\ (?:for|example|sample)"
    r"|code(?:voorbeeld|regel)|function\ call|config(?:uration)?\ (?:line|snippet|example)"
    r"|env(?:ironment)?\ variable)\b"
    r"| \b(?:write|make|create|define|declare|call|schrijf|maak)\b\ .{0,30}?\b(?:loop|function|method|array|regex"
    r"|decorator|functie|lus)\b"
)
# stripComment, do_it(), --flag: a name as programs have them.
_IDENTIFIER = re.compile(r"\b[a-z]+[A-Z]|\w_\w|\w\(\)|(?<!\S)--\w")
_DEFINITION = verbose_pattern(
    r"\bwhat\ (?:does|do|is)\ (?:\S+\ ){1,6}(?:mean|stand\ for|meant)\b | \bmeaning\ of\b | \bdefin(?:e|ition)\b "
    r"| \bmeant\ by\b"
    r"| ^what\ (?:does|do)\ [^,]+\ do$ | ^wat\ doe[nt]?\ (?:een|de|het)\b"
    r"| \bwhat\ do\ (?:we|you|they)\ mean\b | \bwat\ (?:betekent|betekenen|houdt|houden|bedoel\w*|verstaat)\b"
    r"| \bbetekenis\b | \bdefinitie\b | ^what\ (?:does|do)\ [^,]+\ do$ | ^wat\ doe[nt]?\ (?:een|de|het)\b "
    r"| ^(?:tell|vertel)\ (?:me|mij)?\ ?(?:more\ )?(?:about|over)\b | ^about\b"
    r"| ^(?:explain|describe|omschrijf|leg)\b | \bbedoeld\ met\b | \bstaat\ .+\ voor$"
)
_WHAT_IS = verbose_pattern(
    r"^(?:what(?:'?s|\ is|\ are|\ was|\ were|'?re)|wat\ (?:is|zijn|was|waren))\ "
    r"(?P<article>an?\b|the\b|een\b|de\b|het\b|your\b|our\b|my\b|these\b|those\b)?\ ?(?P<rest>.+)"
)
_WHO_IS = verbose_pattern(
    r"^(?:who(?:'?s|\ is|\ was|\ are)|wie\ (?:is|was|zijn))\ (?!the\b|de\b|het\b|my\b|our\b|your\b|an?\b|mijn"
    r"|(?:in|on|at|behind|responsible|allowed|eligible|able|using|going|verantwoordelijk"
    r"|bevoegd)\b)\w+(?:\ \w+){0,2}$"
)
_PROCEDURE = verbose_pattern(
    rf"^(?:how|hoe|hwo)\ (?:do|does|can|could|should|must|to|would|may|might|did|kan|kun|kunt|moet|mag|dien)\ "
    rf"  (?:{PRONOUN}|(?:the|a|an|your)\ (?:user|customer|visitor|employee|manager|team)s?)\b"
    rf"| ^how(?:'?s|\ is|\ are)?\ to\b | \bhoe\ (?:\w+\ )?(?:ik|je|u|we|men|moet|kan|te)\b | ^steps?\b | ^stappen\b"
    r"| \b(?:which|what|welke)\ (?:\w+\ )?(?:steps?|stappen)\b | \bsteps?\ (?:to|of|for|do|in)\b | \bstappenplan\b"
    r"| \b(?:procedures?|recipe|instructions|tutorial|walkthrough|werkwijze|handleiding|recept)\b"
    r"| \bwhat\ (?:should|do|must|can|shall)\ (?:i|we|you|one)\ do\b | \bwhat\ to\ do\b | \bwat\ (?:moet|kan|doe"
    r"|te\ doen)\ ?(?:ik|je|u|we)?\b(?=.*\bdoen\b|\ ik\ (?:als|bij|met|na))"
    r"| \bwhat\ happens\ (?:during|at|after|before)\b | \bwat\ gebeurt\ er\b | \bhoe\ gaat\b | ^how\ does\ one\b"
    r"| \bthings\ to\ do\b | ^(?:set|setting)\ up\b | ^install(?:ing|eren)?\b | \bhow\ .{0,40}\bstep\ by\ step\b"
)
_LIST = verbose_pattern(
    r"^(?:list|name|enumerate|noem|geef)\b(?!\ (?:an?|one|een)\b) | \b(?:overview|list|overzicht|lijst)\ (?:of|van)\b"
    r"| \b(?:what|which|wat\ voor|welke)\ (?:\w+\ )?(?:kinds|types|sorts|forms|soorten|typen|types)\b"
    r"| ^what\ (?:must|should|has\ to|have\ to|needs?\ to|can|may|do"
    r"|does)\ (?!.*\bdo$)(?!.*\bcalled$).*?\b(?:contain|include|consist|have|bring|take|taken|"
    r"   arranged?|be\ (?:done|arranged|prepared|filled|taken|removed|returned)|need|provide|submit|pack|supply"
    r"|check)\b"
    r"| ^wat\ (?:moet|mag|kan|neem|breng|heb|moeten|hoort|zit)\b.*\b(?:meenemen|mee|nodig|meebrengen|bevatten|in"
    r"|staan|aanleveren|inleveren)\b"
    r"| ^(?:required|allowed|supported|mandatory|verplichte|toegestane)\ \w+s?\b"
    r"| \bwhat\ are\ (?:some|the\ \w+\ (?:ways|things)|all|two|three|four|five|several|the\ (?:two|three|four"
    r"|five))\b"
    r"| \b(?:what|which|welke|noem)\ (?:are\ )?(?:two|three|four|five|six|twee|drie|vier|vijf|zes|all)\b"
)
_PLURAL = re.compile(
    r"(?:\w{2,}(?<![sui'])s(?<!news)(?<!lens))|people|criteria|children|men|women|media|data|bacteria|fungi",
    re.IGNORECASE,
)
_DUTCH_PLURAL = re.compile(
    r"\w{2,}(?:[^aeiou][^aeious]en|[aeiou][bdfgklmnprstvwz]en|(?:el|er|en|em|um|ie|or|eur|eau|'|tje|je)s)"
    r"(?<!examen)(?<!regen)(?<!haven)(?<!leven)(?<!teken)(?<!wapen)|kinderen|leden",
    re.IGNORECASE,
)
_NOUNS = re.compile(rf"^(?:what|wh?ich|welke) (?:of )?(?:the |de )?(?P<nouns>(?!{AUXILIARY}\b).+)", re.IGNORECASE)
_NOUNS_END = re.compile(rf" (?:{AUXILIARY}|of|in|from|to|for|with|on|van|voor|die|dat|that|who)\b", re.IGNORECASE)
_YES_NO = verbose_pattern(
    rf"^(?:{AUXILIARY})\ (?!(?:you|u|je)\ (?:write|make|help|translate|draw|sing|schrijven|maken|help)) "
    rf"| ^(?:whether|if|of)\b"
    r"| ^(?:is\ there|are\ there|is\ er|zijn\ er) | ,\ (?:right|correct|toch|of\ niet)\ ?\?*$"
    r"| ^(?:bestaat|bestaan|geldt|gelden|werkt|werken|zit|zitten|klopt|betekent|gaat|gaan|komt|komen|staat|staan"
    r"|helpt|blijft"
    r"  |krijg|krijgt|hoort|horen|vervalt|loopt|past|passen|kost|draait|ondersteunt|neemt|betaal|betaalt)\ (?:ik"
    r"|je|u|we|er|de|het|een|dit|dat|mijn|deze|jullie|[A-Z])"
)
_WRITE_FOR_ME = verbose_pattern(
    r"^(?:can|could|would|will|kun|kan|kunt)\ (?:you|u|je)\ (?:write|make|help|translate|draw|sing|schrijven"
    r"|maken|een)\b|^(?:write|translate|draw|summari[sz]e|schrijf|vertaal)\b"
)

_QUESTION_WORD = re.compile(
    rf"(?:^|, (?:and |en )?|\b(?P<preposition>in|at|for|by|of|to|from|on|with|under|during|after|through|op"
    rf"|van|voor|door|uit|bij|aan|met|tot|naar|onder|tijdens|na|als|tussen|between) )(?P<asked>{WH}\b)",
    re.IGNORECASE,
)
_LATE_QUESTION_WORD = re.compile(
    r"\b(?:(?:within|binnen) )?(?:what|which|whom|who|where|when|welke?|wat|wie)\b"
    r"(?!.*\b(?:what|which|who|welke?|wat)\b).*$",
    re.IGNORECASE,
)
LONGEST_NOUN_PHRASE = 4
_LONGEST_TERM = 5
_LONGEST_BARE_TOPIC = 4


def asked_from(question: str) -> str:
    """The question from its question word on; the whole when it begins with it, or has none."""
    if re.match(rf"(?:{AUXILIARY})\s|(?:list|name|noem|compare|explain)\b", question, re.IGNORECASE):
        return question
    subordinate = re.match(
        rf"(?:when|if|wanneer|als|where) (?!{AUXILIARY}\b)[^?,]*, (?=(?:{WH}|{AUXILIARY})\b)",
        question,
        re.IGNORECASE,
    )
    if subordinate:
        return question[subordinate.end() :]
    late = _LATE_QUESTION_WORD.search(question) if question.rstrip().endswith("?") else None
    if re.match(rf"{WH}\b", question, re.IGNORECASE):
        return late.group() if late and re.match(rf"when (?!{AUXILIARY}\b)", question, re.IGNORECASE) else question
    if inverted := re.search(rf", ({AUXILIARY} {PRONOUN}\s.*)", question, re.IGNORECASE):
        return inverted[1]
    # The last one: those before it begin relative clauses ("..., who was born in what year?").
    if starts := [match.start("asked") for match in _QUESTION_WORD.finditer(question)]:
        begins = _QUESTION_WORD.match(question)
        return question[begins.start("asked") if begins else starts[-1] :]
    return late.group() if late else question


def classify(question: str) -> tuple[QuestionKind, ValueKind | None]:
    """The kind of a question without greetings, and the kind of the value that it asks for."""
    whole = question.strip().rstrip("?!. ")
    if not whole:
        return QuestionKind.OTHER, None
    asked = asked_from(whole + "?" * question.rstrip().endswith("?")).rstrip("?!. ")
    kind = _kind(whole, asked)
    if kind is QuestionKind.OTHER and (expected := expected_value(asked)):
        return QuestionKind.FACT, expected
    if kind in (QuestionKind.FACT, QuestionKind.SUPERLATIVE, QuestionKind.CODE, QuestionKind.LIST):
        expected = expected_value(asked)
        return kind, expected if kind is not QuestionKind.LIST or expected in _WHOLE_VALUES else None
    if kind is QuestionKind.COUNT:
        return kind, ValueKind.NUMBER
    return kind, None


# "What times", "which dates": plural in form.
_SINGLE_VALUES = (
    ValueKind.TIME,
    ValueKind.DATE,
    ValueKind.DURATION,
    ValueKind.CONTACT,
    ValueKind.AMOUNT,
    ValueKind.NUMBER,
)
# Of a list, what is listed is not a value of these kinds alone.
_WHOLE_VALUES = (ValueKind.PERSON, ValueKind.PLACE, ValueKind.CONTACT)


def _kind(whole: str, asked: str) -> QuestionKind:
    for kind, pattern in _ORDER:
        if pattern.search(asked):
            return kind
    if _COMPARISON.search(whole) or _THAN.search(whole):
        return QuestionKind.COMPARISON
    if not _NOT_SUPERLATIVE.search(asked) and _SUPERLATIVE.search(asked):
        return QuestionKind.SUPERLATIVE
    if _MEASURE.search(asked):
        return QuestionKind.FACT
    if _COUNT.search(asked):
        return QuestionKind.COUNT
    if _CODE.search(asked) or (
        _IDENTIFIER.search(asked) and re.match(r"what(?: does|'?s| is)|wat (?:doet|is)", asked, re.IGNORECASE)
    ):
        return QuestionKind.CODE
    if _DEFINITION.search(asked) or _WHO_IS.search(asked):
        return QuestionKind.DEFINITION
    if expected_value(asked) is ValueKind.CONTACT:
        return QuestionKind.FACT
    if _PROCEDURE.search(asked):
        return QuestionKind.PROCEDURE
    if _is_list(asked):
        return QuestionKind.FACT if expected_value(asked) in _SINGLE_VALUES else QuestionKind.LIST
    if _YES_NO.search(asked):
        return QuestionKind.YES_NO
    if _is_definition(asked):
        return QuestionKind.DEFINITION
    if re.match(rf"(?!how\b|hoe\b){WH}\b", asked, re.IGNORECASE):
        return QuestionKind.FACT
    return QuestionKind.OTHER


_ORDER = ((QuestionKind.OTHER, _WRITE_FOR_ME), (QuestionKind.REASON, _REASON))


def _is_list(asked: str) -> bool:
    if _LIST.search(asked):
        return True
    if nouns := _NOUNS.match(asked):
        return _begins_with_plural(asked, nouns["nouns"])
    what_is = _WHAT_IS.match(asked)
    if what_is and (what_is["article"] or "").lower() in ("the", "de", "your", "our", "these"):
        head = re.split(r" (?:of|in|for|to|on|at|that|van|voor|op|bij|when|as)\b", what_is["rest"])[0]
        plural_verb = re.match(r"what(?: a| we|'?)re\b|wat (?:zijn|waren)\b", asked, re.IGNORECASE)
        return bool(plural_verb) and any(_is_plural(word) for word in head.split()[:LONGEST_NOUN_PHRASE])
    if not re.match(rf"{WH}\b|{AUXILIARY}\b", asked, re.IGNORECASE):
        head = re.split(r" (?:of|in|for|to|on|with|van|voor|met)\b", asked)[0]
        return head != asked and _is_plural(head.split()[-1])
    return False


def _begins_with_plural(asked: str, nouns: str) -> bool:
    """Whether a plural is asked for: "valves do you sell", "small countries drink"; not "theorem states that"."""
    words = _NOUNS_END.split(nouns, maxsplit=1)[0].split()
    auxiliary = re.search(rf" {AUXILIARY}\b", nouns, re.IGNORECASE)
    if auxiliary and auxiliary.start() <= len(" ".join(words)):
        return len(words) <= LONGEST_NOUN_PHRASE and _is_plural(words[-1])
    if not re.match(r"wh?ich|welke", asked, re.IGNORECASE):
        return False
    verb_follows = len(words) > 2 and not re.match(
        r"(?:the|an?|its?|this|these|no|most|more|both|all|de|het|een)$|.*s$", words[2]
    )
    return _is_plural(words[0]) or (verb_follows and _is_plural(words[1]))


def _is_plural(word: str) -> bool:
    return bool(_PLURAL.fullmatch(word) or _DUTCH_PLURAL.fullmatch(word))


_PREPOSITION = re.compile(r"\b(?:of|in|for|to|on|at|per|with|when|if|van|voor|op|bij|met|als)\b", re.IGNORECASE)


def _is_definition(asked: str) -> bool:
    if what_is := _WHAT_IS.match(asked):
        words = what_is["rest"].split()
        article = (what_is["article"] or "").lower()
        # "What is a premium?" asks for no amount.
        is_term = article in ("a", "an", "een") and not _PREPOSITION.search(what_is["rest"])
        if (expected_value(asked) and not is_term) or len(words) > _LONGEST_TERM + 2:
            return False
        if article in ("a", "an", "een"):
            return not re.search(r"\b(?:that|which|who|waar\w+|die|dat)\b", what_is["rest"])
        return len(words) <= _LONGEST_TERM and (not article or (len(words) <= 3 and " of " not in what_is["rest"]))
    is_bare = not re.match(rf"{WH}\b|{AUXILIARY}\b", asked, re.IGNORECASE)
    return is_bare and len(asked.split()) <= _LONGEST_BARE_TOPIC and not expected_value(asked)
