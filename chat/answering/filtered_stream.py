"""Filters a model's text before it is stored and shown: removes the site's rules and invented links. PURE."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from chat.answering.attribution import AttributionStream, Attributor
from chat.answering.tool_calls import FUNCTION
from chat.exceptions import AnswerWithheld

if TYPE_CHECKING:
    import numpy as np

    from chat.answering.prompts import Prompt
    from chat.types import ContextSource
    from retrieval.types import Turn

# Addresses of the web and of mail in texts, and which of them a model may repeat.

# Longer ones are nobody's to click.
LONGEST_ADDRESS = 2048
# What ends an address in prose, in Markdown and in a table.
ENDS_ADDRESS = re.compile(r"[\s<>\"`|\]\\^{}\u0000-\u001f]")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://[^\s<>\"`|\]\\^{}]{1,2048}|\bwww\.[^\s<>\"`|\]\\^{}]{1,2048}", re.IGNORECASE)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PUNCTUATION = ".,;:!?'*_~)"
# What urllib leaves as it is: the signs that have a meaning in addresses, and what is encoded already.
_SAFE = "!#$%&'()*+,/:;=?@[]~-._"
_ENCODED = re.compile(r"%[0-9a-fA-F]{2}")


def canonical(address: str) -> str:
    """The address in the one form by which addresses are compared; empty for one that must not be followed.

    Scheme and host are in lower case, an empty path is "/", characters beyond ASCII behind the host are
    percent-encoded, as browsers send them. Path, case, query and fragment are kept. Addresses with a user's name, with
    characters that browsers rewrite, and of other schemes than http, https and mailto must not be followed.
    """
    if len(address) > LONGEST_ADDRESS or ENDS_ADDRESS.search(address):
        return ""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return ""
    rest = quote(address.partition(":")[2], safe=_SAFE) if parts.scheme == "mailto" else ""
    if parts.scheme == "mailto":
        return f"mailto:{rest.lower()}"
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or "%" in host:
        return ""
    standard = {"http": 80, "https": 443}[parts.scheme]
    where = host if port in (None, standard) else f"{host}:{port}"
    # Cut from the text itself: taken apart and put together, an empty query would be lost.
    behind = address.partition("://")[2][len(parts.netloc) :]
    behind = _ENCODED.sub(lambda found: found.group().upper(), quote(behind, safe=_SAFE))
    return f"{parts.scheme}://{where}{behind if behind.startswith('/') else '/' + behind}"


def find_addresses(text: str) -> list[str]:
    """The addresses in a text, mail addresses with "mailto:", without the punctuation that closes the sentence."""
    addresses = map(without_closing, _ADDRESS.findall(text) if "://" in text or "www." in text else ())
    emails = _EMAIL.findall(text) if "@" in text else ()
    return [
        *(f"https://{address}" if address[:4].lower() == "www." else address for address in addresses),
        *(f"mailto:{email}" for email in emails),
    ]


def without_closing(address: str) -> str:
    """The address without characters of the sentence around it: a bracket that it does not open, closing
    punctuation.
    """
    depth = 0
    for at, sign in enumerate(address):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            address = address[:at]
            break
    balanced = depth <= 0
    while address and address[-1] in _PUNCTUATION and not (balanced and address[-1] == ")"):
        address = address[:-1]
    return address


def known_addresses(sources: Iterable[ContextSource]) -> frozenset[str]:
    """The canonical addresses in the sources' texts, and those of their documents."""
    blocks = [source.block for source in sources]
    texts = (canonical(address) for block in blocks for address in find_addresses(block.content))
    documents = (canonical(passage.document_url) for block in blocks for passage in block.passages)
    return frozenset({*texts, *documents} - {""})


# Links of a model's answer that nobody vouches for, broken while the answer is streamed.
#
# What is broken is shown as text wherever it is shown as Markdown: on the site's pages, and by programs that ask over
# the APIs. Code is treated like prose, because programs differ on where code begins; so the text is changed where a
# link could be, and nowhere else:
#
# - an address that does not stand in a source: ``https: //host[.]example/path``, ``www[.]…``, ``name[@]host``;
# - ``[label](target)`` whose target is none of the known addresses: a space before the bracket;
# - ``[label]: target`` at the beginning of a line, which makes a link of every ``[label]``: a space before the colon;
# - ``<scheme:…>`` and HTML that can lead somewhere, unless the whole sign stands in a source: a space behind the
# bracket; - character references that spell an address (``https&#58;//``): a space behind the ampersand.

_TRIGGER = re.compile(r"[&:@.(<\[]")
_SEPARATOR = re.compile(r"\\?/\\?/")
_REFERENCE = re.compile(r"&#?[0-9A-Za-z]{1,31};")
_DOMAIN = re.compile(r"@[\w-]{1,63}(?:\\?\.[\w-]{1,63}){1,8}")
_NAME_BEFORE = re.compile(r"[\w.+-]{1,64}\\?\Z")
_WORD_BEFORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}\\?\Z")
_WWW = re.compile(r"(?:^|\W)(www)\\?\Z", re.IGNORECASE)
_TARGET = re.compile(r"\(([^\s()]{0,2048}+(?:\([^\s()]{0,200}+\)[^\s()]{0,200}+){0,8}+)")
_SCHEMES = frozenset(
    {"mailto", "javascript", "vbscript", "data", "tel", "sms", "xmpp", "file", "blob", "callto", "skype", "whatsapp"}
    | {"intent", "about", "view-source"}
)
_LEADING_TAGS = (
    "a|area|audio|base|body|button|embed|form|frame|iframe|image|img|input|link|math|meta|object|picture|script|source"
    "|style|svg|table|td|video"
)
_LONGEST_TAG = 600
_LEADING_TAG = re.compile(rf"<(?:{_LEADING_TAGS})[\s/][^<>]{{0,{_LONGEST_TAG}}}+>?", re.IGNORECASE)
_OPEN_TAG = re.compile(rf"<(?:{_LEADING_TAGS})[\s/][^<>]{{0,{_LONGEST_TAG}}}+\Z", re.IGNORECASE)
_AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*+>?")
_TAG = re.compile(rf"<[A-Za-z][^<>]{{0,{_LONGEST_TAG}}}+>")
_LONG_WORD = re.compile(rf"\S{{{LONGEST_ADDRESS}}}(?=\S)")
# What stands in front of a definition on its line.
_SIGNS = " \t>*+-0123456789.)"
# In a link's target these can lead to another site; other targets lead nowhere.
_LEADS_AWAY = re.compile(r"//|[:&\\<]")
# As far as anything looks back.
_BEHIND = 66


class LinkStream:
    """Passes streamed text on word by word, and breaks links to addresses that are not in ``known`` (canonical).

    ``texts`` are the sources': HTML that occurs in one of them stays. Blanks are inserted into a word of more than
    :data:`LONGEST_ADDRESS` characters. The work for a piece is bounded by its length and that of the longest address.
    """

    def __init__(self, known: Collection[str], texts: Collection[str] = ()) -> None:
        self._known = known
        self._tags = {tag for text in texts if "<" in text for tag in _TAG.findall(text)}
        # The word, or the sign of HTML, that is not at its end yet.
        self._held = ""
        self._only_signs = True
        self._definition = False

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece; may be empty."""
        text = _LONG_WORD.sub(r"\g<0> ", self._held + piece)
        end = 1 + max(text.rfind(blank) for blank in " \t\n")
        tag = _OPEN_TAG.search(text, max(0, end - 2 * _LONGEST_TAG))
        return self._pass(text, min(end, tag.start()) if tag else end)

    def close(self) -> str:
        """The text that was held back, at the end of the stream."""
        return self._pass(self._held, len(self._held))

    def _pass(self, text: str, end: int) -> str:
        shown: list[str] = []
        done = 0
        while (trigger := _TRIGGER.search(text, done)) and (at := trigger.start()) < end:
            shown.append(self._pass_on(text[done:at]))
            replacement, done = self._replace_at(text, at, text[max(0, at - _BEHIND) : at])
            self._pass_on(text[at:done])
            shown.append(replacement)
        end = max(done, end)
        shown.append(self._pass_on(text[done:end]))
        self._held = text[end:]
        return "".join(shown)

    def _pass_on(self, text: str) -> str:
        """The text, unchanged, after noting whether the line so far consists of signs only."""
        line = text.rpartition("\n")
        self._only_signs = (self._only_signs or bool(line[1])) and not line[2].strip(_SIGNS)
        return text

    def _replace_at(self, text: str, at: int, before: str) -> tuple[str, int]:
        """The text to show for the character at ``at``, and the offset at which the text continues."""
        match text[at]:
            case "&":
                return self._reference(text, at)
            case ":":
                return self._colon(text, at, before)
            case "@":
                return self._mail(text, at, before)
            case "." if is_www := _WWW.search(before):
                return self._address(text, at, at + 1, is_www[1])
            case "(" if before.endswith("]"):
                return self._target(text, at)
            case "<":
                return self._angle(text, at)
            case "[" if not before.endswith("\\"):
                self._definition = self._only_signs
        return text[at], at + 1

    def _reference(self, text: str, at: int) -> tuple[str, int]:
        if reference := _REFERENCE.match(text, at):
            spelt = html.unescape(reference.group())
            if spelt.isascii() and (spelt.isalnum() or spelt in ":/.@\\"):
                return "& ", at + 1
        return "&", at + 1

    def _colon(self, text: str, at: int, before: str) -> tuple[str, int]:
        if self._definition and before.endswith("]"):
            self._definition = False
            return " :", at + 1
        word = _WORD_BEFORE.search(before)
        scheme = word.group().rstrip("\\") if word else ""
        if separator := _SEPARATOR.match(text, at + 1):
            return self._address(text, at, separator.end(), scheme)
        if scheme.lower() in _SCHEMES and text[at + 1 : at + 2].strip():
            return self._address(text, at, at + 1, scheme)
        return ":", at + 1

    def _address(self, text: str, at: int, begin: int, word: str) -> tuple[str, int]:
        """An address of which ``word`` has been shown and which continues at ``at``."""
        end = ENDS_ADDRESS.search(text, begin)
        whole = without_closing(word + text[at : end.start() if end else len(text)])
        stop = max(begin, at + len(whole) - len(word))
        addresses = [whole] if text[at] == ":" else [f"https://{whole}", f"http://{whole}"]
        return text[at:stop] if any(map(self._is_known, addresses)) else _broken(text[at:stop]), stop

    def _is_known(self, address: str) -> bool:
        return canonical(address) in self._known

    def _mail(self, text: str, at: int, before: str) -> tuple[str, int]:
        name, domain = _NAME_BEFORE.search(before), _DOMAIN.match(text, at)
        is_foreign = name and domain and not self._is_known(f"mailto:{name.group()}{domain.group()}")
        return "[@]" if is_foreign else "@", at + 1

    def _target(self, text: str, at: int) -> tuple[str, int]:
        match = _TARGET.match(text, at)
        target = without_closing(match[1]) if match else ""
        leads_away = _LEADS_AWAY.search(target) and not self._is_known(target)
        # What comes behind a blank may lead away too.
        return " (" if leads_away or text[at + 1 : at + 2].isspace() else "(", at + 1

    def _angle(self, text: str, at: int) -> tuple[str, int]:
        tag = _LEADING_TAG.match(text, at) or _AUTOLINK.match(text, at)
        if tag is None:
            return "<", at + 1
        if self._is_known(tag.group()[1:-1]) or tag.group() in self._tags:
            return tag.group(), tag.end()
        return "< ", at + 1


def _broken(address: str) -> str:
    """The address, broken behind its scheme so that no program takes it for one."""
    address = address.replace("@", "[@]")
    separator = _SEPARATOR.match(address, 1)
    if not address.startswith(":"):
        broken = f"[.]{address[1:].replace('://', ': //')}"
    elif separator is None:
        broken = f": {address[1:]}"
    else:
        host, slash, path = address[separator.end() :].partition("/")
        broken = f": //{host.replace('.', '[.]')}{slash}{path}"
    # A bracket behind the one that was put in would make a link of the two.
    return re.sub(r"\](?=[(\[:])", "] ", broken)


# So many letters and digits of the rules in a row, about eight words, are a repetition of them.
LONGEST_SHARED = 40


class OutputStream:
    """Passes a model's text on, adds the markers that the site finds for its sentences, and keeps only links whose
    addresses occur in the sources that the model was given. ``sources`` are all that were found.

    A text that repeats the rules of the prompt, or names the site's function, is withheld, unless a source or the
    conversation contains the same. Only letters and digits are compared.
    """

    def __init__(
        self,
        prompt: Prompt,
        question: str,
        sources: Sequence[ContextSource],
        history: Sequence[Turn],
        encode: Callable[[Sequence[str]], np.ndarray],
    ) -> None:
        prompted = [source for source in sources if source.marker in prompt.markers]
        texts = [source.block.content for source in prompted]
        said = [question, *(text for turn in history for text in (turn.question, turn.answer))]
        self._known = "\n".join([*texts, *said])
        self._known_letters = _letters(self._known)
        rules = _letters(prompt.rules)
        self._rules = {rules[at : at + LONGEST_SHARED] for at in range(len(rules) - LONGEST_SHARED + 1)}
        self._last = self._last_letters = ""
        # The links are compared with it at each piece: what the model is given later on is added.
        self._addresses = set(known_addresses(prompted))
        self._links = LinkStream(self._addresses, texts)
        self._attribution = AttributionStream(Attributor(sources, prompt.markers, encode))

    @property
    def gives_up(self) -> bool:
        """Whether the finished text only says that the sources do not answer."""
        return self._attribution.gives_up

    def admit(self, sources: Sequence[ContextSource]) -> None:
        """Add sources: from now on the text may cite them and repeat their words."""
        self._addresses |= set(known_addresses(sources))
        self._known += "\n".join(source.block.content for source in sources)
        self._known_letters = _letters(self._known)
        self._attribution.admit(sources)

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece; may be empty. Raises: AnswerWithheld, LoopingAnswer."""
        self._refuse_secrets(piece)
        return self._attribution.feed(self._links.feed(piece))

    def close(self, *, is_cut: bool = False) -> str:
        """The text that was held back, at the end of the stream. Raises: LoopingAnswer."""
        return self._attribution.feed(self._links.close()) + self._attribution.close(is_cut=is_cut)

    def _refuse_secrets(self, piece: str) -> None:
        self._last = self._last[-len(FUNCTION) :] + piece
        if FUNCTION in self._last and FUNCTION not in self._known:
            raise AnswerWithheld("function")
        self._last_letters = self._last_letters[-LONGEST_SHARED + 1 :] + _letters(piece)
        for at in range(len(self._last_letters) - LONGEST_SHARED + 1):
            shared = self._last_letters[at : at + LONGEST_SHARED]
            if shared in self._rules and shared not in self._known_letters:
                raise AnswerWithheld("prompt")

    def stop(self) -> str:
        """The held-back part of a sentence, if the stream stops before its end."""
        return self._attribution.close()


def _letters(text: str) -> str:
    """The letters and digits of the text, in lower case and without accents."""
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return "".join(filter(str.isalnum, plain.casefold()))
