"""The words with which people ask, in English and Dutch: greetings, requests, question words. PURE."""

from __future__ import annotations

import re

WH = (
    r"(?:what(?:'?s)?|wh?ich|who(?:'?s|m|se)?|when(?:'?s)?|where(?:'?s)?|why|how(?:'?s)?|hwo"
    r"|wat|welke?|wie|wiens|wanneer|waar\w*|hoe\w{0,4})"
)
AUXILIARY = (
    r"(?:is|are|am|was|were|do|does|did|can|could|may|might|must|shall|should|will|would|has|have|had"
    r"|isn'?t|aren'?t|don'?t|doesn'?t|can'?t|ben|bent|zijn|waren|kan|kun|kunt|kunnen|mag|mogen|moet|moeten|zal|zult"
    r"|zullen|zou|zouden|heb|hebt|heeft|hebben|wordt|word|worden|werd|doe|doet|doen|hoeft?|hoeven|krijgt?|krijgen)"
)
PRONOUN = (
    r"(?:i|you|u|we|they|he|she|it|one|someone|somebody|people|ppl|ik|je|jij|jullie|wij|men|zij|ze|hij|het|er|iemand)"
)
_GREETING = re.compile(
    r"^(?:(?:hi+|hello|hey|dear|good (?:morning|afternoon|evening|day)|hallo|hoi|dag|beste|geachte|"
    r"goede(?:n)?(?:morgen|middag|avond|dag)|goedendag)(?: (?:there|all|team|everyone|everybody|allemaal|\w+))?"
    r" ?[,!.:–-]+ ?|(?:hi+|hello|hey|hallo|hoi|goede(?:n)?(?:morgen|middag|avond|dag)) )",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?<![\s,.!–-])[\s,.!–-]*+\b(?:(?:many |kind )?thank(?:s| you)\b[^?]*|thx|tnx|cheers|(?:kind"
    r"|best) regards\b[^?]*"
    r"|(?:alvast |heel )?(?:hartelijk )?(?:bedankt|dank(?: u| je)?(?: ?wel)?)\b[^?]*|met vriendelijke groet\w*[^?]*"
    r"|please|pls|plz|alstublieft|alsjeblieft|aub|svp|a\.u\.b\.)[\s.!]*(?=\?*$)",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^(?:please|pls|so|and|also|ok(?:ay)?|well|en|dus|ook|just|quick question|vraag(?:je)?|question)[\s,:]+"
    r"|^(?:(?:can|could|would|will) (?:you|u|someone|anyone|somebody)(?: please| kindly)? |please )?"
    r"(?:tell|show|let|remind|inform) (?:me|us)(?: know| see)?(?: please)?[,:]? "
    r"|^(?:can|could|would|will) (?:you|someone|anyone|somebody)(?: please| kindly)? (?=explain|list|name|give"
    r"|describe|"
    r"define|compare|summari[sz]e)"
    r"|^(?:i(?:'d| would)? ?(?:want|like|need|wish|have)(?: to (?:know|ask|find out|understand|hear|learn))[,:]? )"
    r"|^i(?:'m| am|m)? (?:wonder|wondering|curious(?: about)?|looking for|not sure|trying to find out)[,:]? "
    r"|^(?:do|does) (?:you|anyone|anybody|someone) know[,:]? (?=wh|how|if)"
    r"|^any idea(?:s)? |^(?:i )?(?:don'?t|do not) know (?=wh|how|if)"
    r"|^(?:(?:kunt|kan|kun|zou|wilt|wil)(?: u| je| jij| iemand)(?: (?:mij|me|ons))?(?: (?:misschien|even"
    r"|alstublieft|ook))*"
    r"(?: kunnen)? )(?:zeggen|vertellen|uitleggen|aangeven|laten weten)[,:]? "
    r"|^(?:ik (?:wil|wilde|zou)(?: graag)? (?:weten|vragen)|ik vraag me af|weet (?:u|je|jij|iemand)|vertel (?:me"
    r"|mij))[,:]? ",
    re.IGNORECASE,
)
_SEARCHED_IN_VAIN = re.compile(
    r"\b(?:(?:could|can|did|do)(?:n'?t| not|not) (?:find|see)|looked (?:through|in|for|everywhere)|searched|"
    r"(?:kan|kon)[^.?!]* niet vinden|gezocht)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[?!]) |(?<=\w\w\.) (?=[A-Z])")
_QUESTION_START = re.compile(rf"^(?:{WH}\b|{AUXILIARY}\s)", re.IGNORECASE)


def verbose_pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.VERBOSE)


def sentences_that_ask(text: str) -> tuple[list[str], list[str]]:
    """The sentences that ask, and those before them that tell what it is about; without greetings and thanks.

    A text without a question mark or a question word asks as a whole.
    """
    sentences = [strip_requests(sentence) for sentence in _SENTENCE_END.split(" ".join(text.split()))]
    sentences = [sentence for sentence in sentences if re.search(r"\w", sentence)]
    asking = [at for at, sentence in enumerate(sentences) if asks(sentence)]
    if not asking:
        return [" ".join(sentences)] if sentences else [text.strip()], []
    told = [sentence for sentence in sentences[: asking[-1]] if not asks(sentence)]
    return [sentences[at] for at in asking], [each for each in told if not _SEARCHED_IN_VAIN.search(each)]


def asks(sentence: str) -> bool:
    return sentence.rstrip().endswith("?") or bool(_QUESTION_START.match(sentence))


def strip_requests(sentence: str) -> str:
    """The sentence without greeting, request and thanks ("Hello, could you please tell me ... Thanks!")."""
    stripped = sentence.strip().replace("’", "'")
    while True:
        shorter = _THANKS.sub("", _REQUEST.sub("", _GREETING.sub("", stripped))).strip()
        if shorter == stripped:
            return stripped
        stripped = shorter


_INTENTION = re.compile(
    r"^(?:i|we|ik|wij)(?:'m| am|m)? (?:want|would like|'d like|need|have|plan|try|trying|going|wil|moet|ga"
    r"|zou graag) "
    r"(?:to |graag )?",
    re.IGNORECASE,
)


def strip_intention(sentence: str) -> str:
    """ "put a prototype online" of "I want to put a prototype online"."""
    return _INTENTION.sub("", sentence)


# What stands at the front of a question and carries none of its meaning.
_ASKING = re.compile(
    rf"^(?:{WH}|{AUXILIARY}|{PRONOUN}|whether|if|of|there|the|(?-i:a|an)|de|een|many|much|mutch|often|long"
    rf"|quickly|soon|veel|"
    r"vaak|lang|snel|laat|to|te|in|at|on|for|by|voor|bij|op|met|about|explain|define|describe|list|name|give|compare|"
    r"noem|geef|omschrijf|vergelijk|me|us|be|all|alle|mij|ons|between|within|tussen|binnen|kost|kosten|cost|costs"
    r"|mean|means|betekent|get|mean by)\b[\s,:]*",
    re.IGNORECASE,
)
_CLOSING = re.compile(r" (?:mean|means|stand for|betekenen|cost|kosten|called|genoemd|do)$", re.IGNORECASE)
_AUXILIARY_AFTER_NOUN = re.compile(rf"(?<=\w) {AUXILIARY} (?:{PRONOUN} )?(?=\w)", re.IGNORECASE)


def strip_asking(question: str) -> str:
    """What a question is about: without the words that only ask. The whole of it when nothing else is left."""
    whole = question.strip().rstrip("?!. ")
    topic = strip_intention(whole)
    while (shorter := _ASKING.sub("", topic, count=1)) != topic and shorter.strip():
        topic = shorter
    if re.match(rf"{WH}\b", whole, re.IGNORECASE):
        topic = _AUXILIARY_AFTER_NOUN.sub(" ", topic, count=1)
        topic = _CLOSING.sub("", topic)
    return topic.strip(" ,") or whole
