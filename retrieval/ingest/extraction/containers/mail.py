"""EML: a mail's headers and words; its attachments are documents of their own."""

from __future__ import annotations

import email
import email.policy
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any, cast
from urllib.parse import unquote

from retrieval.ingest.extraction.containers.members import Members
from retrieval.ingest.extraction.decoding import canonical, decode
from retrieval.ingest.extraction.lines import derive_title, plain_title
from retrieval.ingest.extraction.text.html import convert_html, parse_html
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits
from retrieval.ingest.extraction.writer import MarkdownWriter

HEADERS = ("From", "To", "Cc", "Date")
# Lines that Markdown would take for the rule below a heading, and indentation that it would take for code.
_RULE = re.compile(r"^(?=[ \t]*(?:-+|=+)[ \t]*$)", re.M)
_INDENT = re.compile(r"^[ \t]{4,}", re.M)
_HASHES = re.compile(r"^(#{1,6}) ", re.M)
_WORD = re.compile(r"\w")
_SHOWN_PART = re.compile(r"\bcid:([^\s\"'<>()]{1,300})", re.I)
_PICTURES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".bmp", ".svg", ".emz", ".wmz", ""))


@dataclass(frozen=True, slots=True)
class Attachment:
    """``data`` is None of what is only linked to. By its ``content_id`` the page of a mail shows it."""

    name: str
    data: bytes | None
    content_id: str = ""


def extract_mail(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    message = email.message_from_bytes(data, policy=email.policy.default)
    body = message.get_body(preferencelist=("plain", "html"))
    rich = message.get_body(preferencelist=("html",))
    page = _read_text(rich, filename) if rich is not None else ""
    words = quote_plain(_read_text(body, filename)) if body is not None and body is not rich else ""
    if not has_words(words) and page:
        words = read_page(page, filename)
    headers = {name: _header(message, name) for name in (*HEADERS, "Subject")}
    return write_mail(headers, words, page, _attachments(message, (body, rich)), filename, media_type, limits)


def has_words(text: str) -> bool:
    return bool(_WORD.search(text))


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(canonical(str(message.get(name) or "")).split())
    except (ValueError, IndexError, AttributeError):  # the library's parsers of damaged headers
        return " ".join(canonical(str(dict(message.raw_items()).get(name, ""))).split())


def _read_text(part: Any, filename: str) -> str:
    payload = part.get_payload(decode=True) or b""
    try:
        return canonical(payload.decode(part.get_content_charset() or "utf-8"))
    except (LookupError, ValueError):
        is_html = part.get_content_subtype() == "html"
        return decode(payload, filename, html=is_html)[0] if payload.strip() else ""


def read_page(source: str, filename: str) -> str:
    root = parse_html(source, filename) if source.strip() else None
    return convert_html(root) if root is not None else ""


def quote_plain(text: str) -> str:
    """Plain text, so that Markdown finds no headings and no code in it."""
    return _HASHES.sub(r"\\\1 ", _INDENT.sub("   ", _RULE.sub("\n", text))).strip()


def _attachments(message: EmailMessage, words: tuple[Any, ...]) -> Iterator[Attachment]:
    """Also those that stand among the words, but for the words themselves."""
    number = 0
    for part in message.walk() if not message.is_attachment() else []:
        if any(part is each for each in words) or (part.is_multipart() and part.get_content_type() != "message/rfc822"):
            continue
        name = part.get_filename() or ""
        if part.get_content_type() == "message/rfc822":
            number += 1
            inner = part.get_payload(0) if part.is_multipart() else part
            subject = _header(cast(EmailMessage, inner), "Subject").replace("/", "-")
            name = name or f"{subject or f'message {number}'}.eml"
            yield Attachment(name, inner.as_bytes())  # type: ignore[union-attr]
        elif name:
            data = cast(bytes, part.get_payload(decode=True) or b"")
            yield Attachment(name, data, str(part.get("Content-ID") or ""))


def write_mail(
    headers: dict[str, str],
    words: str,
    page: str,
    attachments: Iterable[Attachment],
    filename: str,
    media_type: str,
    limits: ExtractionLimits,
) -> ExtractedText:
    """The mail as text. ``page`` is its HTML: the pictures that it shows, such as the logos of signatures, are no
    documents."""
    members = Members(filename, limits)
    shown = {unquote(found) for found in _SHOWN_PART.findall(page)}
    for each in attachments:
        is_picture = posixpath.splitext(each.name)[1].lower() in _PICTURES
        if is_picture and each.content_id.strip().strip("<>") in shown:
            members.leave_out("pictures")
        elif each.data is None:
            members.leave_out("linked", each.name)
        else:
            members.add(each.name, each.data)
    subject = plain_title(canonical(headers["Subject"])) or derive_title(filename)
    writer = MarkdownWriter(filename, limits)
    writer.add_heading(subject, 1)
    lines = [(name, " ".join(headers[name].split())) for name in HEADERS]
    names = ", ".join(member.name for member in members.found)
    writer.add_paragraph(
        "\n".join(f"{name}: {_quote(value)}" for name, value in [*lines, ("Attachments", names)] if value)
    )
    writer.add_paragraph(words)
    return writer.finish(media_type=media_type, title=subject, members=members.found, left_out=members.left_out)


def _quote(value: str) -> str:
    """Addresses in angle brackets would be links."""
    return value.replace("<", "(").replace(">", ")")
