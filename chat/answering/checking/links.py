"""Turn an address in a model's answer into plain text if no source contains this address.

This includes addresses in code, because Markdown renderers differ on where code begins.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Set

from chat.answering.checking.addresses import (
    ENDS_ADDRESS,
    LONGEST_ADDRESS,
    find_addresses,
    normalize_address,
    strip_trailing_punctuation,
)
from chat.answering.checking.edits import TextEdit

_TRIGGER = re.compile(r"[&:@.(<]")
_SEPARATOR = re.compile(r"\\?/\\?/")
_REFERENCE = re.compile(r"&#?[0-9A-Za-z]{1,31};")
_DOMAIN = re.compile(r"@[\w-]{1,63}(?:\\?\.[\w-]{1,63}){1,8}")
_NAME_BEFORE = re.compile(r"[\w.+-]{1,64}\\?\Z")
_WORD_BEFORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}\\?\Z")
_WWW = re.compile(r"(?:^|\W)(www)\\?\Z", re.IGNORECASE)
_TARGET = re.compile(r"\(([^\s()]{0,2048}+(?:\([^\s()]{0,200}+\)[^\s()]{0,200}+){0,8}+)")
# A target after blanks is one word, or text in angle brackets.
_TARGET_BEHIND_BLANKS = re.compile(r"\s{1,100}+(<[^<>]{0,2048}+|[^\s()<]{1,2048}+)")
_OPEN_TARGET = re.compile(r"\](?=[(:]\s*+(?:<[^<>]*+)?\Z)")
_DEFINED = re.compile(r":[ \t]*\n?[ \t]*(\S{0,2048})")
_SCHEMES = frozenset(
    {"mailto", "javascript", "vbscript", "data", "tel", "sms", "xmpp", "file", "blob", "callto", "skype", "whatsapp"}
    | {"intent", "about", "view-source"}
)
_NAMES_SCHEME = re.compile(rf"(?:{'|'.join(sorted(_SCHEMES))}):\S", re.IGNORECASE)
_LEADING_TAGS = (
    "a|area|audio|base|body|button|embed|form|frame|iframe|image|img|input|link|math|meta|object|picture|script|source"
    "|style|svg|table|td|video"
)
_LONGEST_TAG = 600
_LEADING_TAG = re.compile(rf"<(?:{_LEADING_TAGS})[\s/][^<>]{{0,{_LONGEST_TAG}}}+>?", re.IGNORECASE)
_OPEN_TAG = re.compile(rf"<(?:{_LEADING_TAGS})[\s/][^<>]{{0,{_LONGEST_TAG}}}+\Z", re.IGNORECASE)
_AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:(?!:)[^\s<>]*+>?")
_MAIL_LINK = re.compile(r"<([\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8})>")
_TAG = re.compile(rf"<[A-Za-z][^<>]{{0,{_LONGEST_TAG}}}+>")
_BRACKET = re.compile(r"[\[⟦【［]|<sup>")
_SIGNS = " \t>*+-0123456789.)"
_LEADS_AWAY = re.compile(r"//|\\|&#?\w+;|\A[^\w/]*+[A-Za-z][A-Za-z0-9+.-]*+:")
_TAG_LEADS_AWAY = re.compile(r"//|[:&\\]|\bon\w+\s*=", re.IGNORECASE)
_SCHEME_ALONE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:\Z")
_BLANK = re.compile(r"[\t\n\r]")
_BEHIND = 66
# The longest label of a link in characters (CommonMark 0.31, section 4.7).
_LONGEST_LABEL = 1000


def find_tags(texts: Collection[str]) -> set[str]:
    return {tag for text in texts if "<" in text for tag in _TAG.findall(text)}


def find_link_safe_boundary(text: str, begin: int, end: int) -> int:
    """Return the largest offset from ``begin`` to ``end`` before which later text cannot change the links."""
    is_at_blank = end < len(text) and text[end].isspace()
    boundary = end if is_at_blank else 1 + max(text.rfind(blank, begin, end) for blank in " \t\n")
    if tag := _OPEN_TAG.search(text, max(begin, end - 2 * _LONGEST_TAG), end):
        boundary = min(boundary, tag.start())
    if target := _OPEN_TARGET.search(text, max(begin, boundary - LONGEST_ADDRESS), boundary):
        boundary = 1 + max(text.rfind(blank, begin, target.start()) for blank in " \t\n")
    return max(begin, boundary, end - LONGEST_ADDRESS)


def find_link_edits(text: str, begin: int, end: int, known: Set[str], tags: Collection[str]) -> list[TextEdit]:
    edits = []
    at = begin
    while (trigger := _TRIGGER.search(text, at, end)) is not None:
        shown, at = _disable_link_at(text, trigger.start(), known, tags)
        if shown != text[trigger.start() : at]:
            edits.append(TextEdit(trigger.start(), at, shown))
    return edits


def _disable_link_at(text: str, at: int, known: Set[str], tags: Collection[str]) -> tuple[str, int]:
    """Return the text to show for the character at ``at``, and the offset to go on from."""
    before = text[max(0, at - _BEHIND) : at]
    match text[at]:
        case "&":
            return _disable_reference(text, at, known)
        case ":":
            return _disable_colon(text, at, before, known)
        case "@":
            return _disable_mail(text, at, before, known)
        case "." if is_www := _WWW.search(before):
            return _disable_address(text, at, at + 1, is_www[1], known)
        case "(" if before.endswith("]"):
            found = _TARGET.match(text, at)
            target = found[1] if found else ""
            # Browsers treat a scheme without a host, such as `x:`, as an address. Stripping would remove its colon.
            leads_away = bool(_SCHEME_ALONE.match(target)) or _is_unknown_external_link(
                strip_trailing_punctuation(target), known
            )
            behind = _TARGET_BEHIND_BLANKS.match(text, at + 1)
            if leads_away or (behind and _is_unknown_external_link(behind[1], known)):
                return " (", at + 1
        case "<":
            return _disable_tag(text, at, known, tags)
    return text[at], at + 1


def _is_unknown_external_link(target: str, known: Set[str]) -> bool:
    return (
        bool(_LEADS_AWAY.search(_BLANK.sub("", target[:LONGEST_ADDRESS]).strip()))
        and normalize_address(target) not in known
    )


def _disable_reference(text: str, at: int, known: Set[str]) -> tuple[str, int]:
    found = _REFERENCE.match(text, at)
    spelt = html.unescape(found.group()) if found else ""
    if spelt.isascii() and (spelt.isalnum() or spelt in ":/.@\\") and spelt:
        begin = 1 + max(text.rfind(blank, max(0, at - LONGEST_ADDRESS), at) for blank in " \t\n")
        word = html.unescape(text[begin : begin + LONGEST_ADDRESS].split(maxsplit=1)[0])
        addresses = find_addresses(word)
        if _NAMES_SCHEME.search(word) or any(normalize_address(address) not in known for address in addresses):
            return "& ", at + 1
    return "&", at + 1


def _disable_colon(text: str, at: int, before: str, known: Set[str]) -> tuple[str, int]:
    if before.endswith("]") and _begins_definition(text, at):
        target = _DEFINED.match(text, at)
        if target and _is_unknown_external_link(target[1], known):
            return " :", at + 1
    word = _WORD_BEFORE.search(before)
    scheme = word.group().rstrip("\\") if word else ""
    if separator := _SEPARATOR.match(text, at + 1):
        return _disable_address(text, at, separator.end(), scheme, known)
    if scheme.lower() in _SCHEMES and text[at + 1 : at + 2].strip():
        return _disable_address(text, at, at + 1, scheme, known)
    return ":", at + 1


def _begins_definition(text: str, at: int) -> bool:
    bracket = at
    while (bracket := text.rfind("[", max(0, at - _LONGEST_LABEL), bracket)) >= 0 and text[:bracket].endswith("\\"):
        pass
    return bracket >= 0 and not text[text.rfind("\n", 0, bracket) + 1 : bracket].strip(_SIGNS)


def _disable_address(text: str, at: int, begin: int, word: str, known: Set[str]) -> tuple[str, int]:
    ends = ENDS_ADDRESS.search(text, begin)
    end = ends.start() if ends else len(text)
    bracket = _BRACKET.search(text, begin, end)
    end = bracket.start() if bracket else end
    whole = strip_trailing_punctuation(word + text[at:end])
    stop = max(begin, at + len(whole) - len(word))
    addresses = [whole] if text[at] == ":" else [f"https://{whole}", f"http://{whole}"]
    is_known = any(normalize_address(address) in known for address in addresses)
    return text[at:stop] if is_known else _write_disabled_address(text[at:stop]), stop


def _disable_mail(text: str, at: int, before: str, known: Set[str]) -> tuple[str, int]:
    name, domain = _NAME_BEFORE.search(before), _DOMAIN.match(text, at)
    is_foreign = name and domain and normalize_address(f"mailto:{name.group()}{domain.group()}") not in known
    return "[@]" if is_foreign else "@", at + 1


def _disable_tag(text: str, at: int, known: Set[str], tags: Collection[str]) -> tuple[str, int]:
    if mail := _MAIL_LINK.match(text, at):
        return "<" if normalize_address(f"mailto:{mail[1]}") in known else "< ", at + 1
    link = _AUTOLINK.match(text, at)
    tag = _LEADING_TAG.match(text, at) or link
    if tag is None:
        return "<", at + 1
    if normalize_address(tag.group()[1:-1]) in known or tag.group() in tags:
        return tag.group(), tag.end()
    leads_away = link or _TAG_LEADS_AWAY.search(_BLANK.sub("", tag.group()))
    return "< " if leads_away else "<", at + 1


def _write_disabled_address(address: str) -> str:
    address = address.replace("@", "[@]")
    separator = _SEPARATOR.match(address, 1)
    if not address.startswith(":"):
        broken = f"[.]{address[1:].replace('://', ': //')}"
    elif separator is None:
        broken = f": {address[1:]}"
    else:
        host, slash, path = address[separator.end() :].partition("/")
        broken = f": //{host.replace('.', '[.]')}{slash}{path}"
    # "](", "][" and "]:" would create a link, so a space separates the two signs.
    return re.sub(r"\](?=[(\[:])", "] ", broken)
