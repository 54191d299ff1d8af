"""EML and MSG: a mail's headers and words; its attachments are documents of their own."""

from __future__ import annotations

import email
import email.policy
import io
import re
from collections.abc import Iterable, Iterator
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, cast

import oxmsg

from retrieval.ingest.extraction.decoding import canonical, decode
from retrieval.ingest.extraction.html import convert_html, parse_html
from retrieval.ingest.extraction.lines import derive_title, plain_title
from retrieval.ingest.extraction.members import Members
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits
from retrieval.ingest.extraction.writer import MarkdownWriter

_HEADERS = ("From", "To", "Cc", "Date")
# Lines that Markdown would take for the rule below a heading, and indentation that it would take for code.
_RULE = re.compile(r"^(?=[ \t]*(?:-+|=+)[ \t]*$)", re.M)
_INDENT = re.compile(r"^[ \t]{4,}", re.M)
_HASHES = re.compile(r"^(#{1,6}) ", re.M)
_WORD = re.compile(r"\w")


def extract_mail(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    message = email.message_from_bytes(data, policy=email.policy.default)
    body = message.get_body(preferencelist=("plain", "html"))
    words = _read_part(body, filename) if body is not None else ""
    if body is not None and body.get_content_subtype() == "plain" and not _WORD.search(words):
        rich = message.get_body(preferencelist=("html",))
        words = _read_part(rich, filename) if rich is not None else ""
    members = Members(filename, limits)
    for part in _attachments(message, body):
        members.add(part[0], part[1])
    headers = {name: _header(message, name) for name in (*_HEADERS, "Subject")}
    return _write(headers, words, members, filename, media_type, limits)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(canonical(str(message.get(name) or "")).split())
    except (ValueError, IndexError, AttributeError):  # the library's parsers of damaged headers
        return " ".join(canonical(str(dict(message.raw_items()).get(name, ""))).split())


def _read_part(part: Any, filename: str) -> str:
    payload = part.get_payload(decode=True) or b""
    is_html = part.get_content_subtype() == "html"
    try:
        text = canonical(payload.decode(part.get_content_charset() or "utf-8"))
    except (LookupError, ValueError):
        text, _ = decode(payload, filename, html=is_html) if payload.strip() else ("", "")
    return _convert_page(text, filename) if is_html else quote_plain(text)


def _convert_page(source: str, filename: str) -> str:
    root = parse_html(source, filename) if source.strip() else None
    return convert_html(root) if root is not None else ""


def quote_plain(text: str) -> str:
    """Plain text, so that Markdown finds no headings and no code in it."""
    return _HASHES.sub(r"\\\1 ", _INDENT.sub("   ", _RULE.sub("\n", text))).strip()


def _attachments(message: EmailMessage, body: Any) -> Iterator[tuple[str, bytes]]:
    """Names and contents, also of those that stand among the words, but for the words themselves."""
    number = 0
    for part in message.walk() if not message.is_attachment() else []:
        if part is body or (part.is_multipart() and part.get_content_type() != "message/rfc822"):
            continue
        name = part.get_filename() or ""
        if part.get_content_type() == "message/rfc822":
            number += 1
            inner = part.get_payload(0) if part.is_multipart() else part
            subject = _header(cast(EmailMessage, inner), "Subject").replace("/", "-")
            yield (name or f"{subject or f'message {number}'}.eml"), inner.as_bytes()  # type: ignore[union-attr]
        elif name:
            yield name, cast(bytes, part.get_payload(decode=True) or b"")


def extract_outlook_mail(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    message = oxmsg.Message.load(io.BytesIO(data))
    words = quote_plain(canonical(message.body or ""))
    if not _WORD.search(words) and message.html_body:
        words = _convert_page(canonical(message.html_body), filename)
    members = Members(filename, limits)
    for attachment in message.attachments:
        if attachment.attached_by_value:
            members.add(attachment.file_name or "attachment", attachment.file_bytes or b"")
        else:
            members.leave_out(attachment.file_name or "attachment", "not held by value")
    sent = message.sent_date
    headers = {
        "From": message.sender or "",
        "To": _header_of(message, "To") or "; ".join(_recipients(message.recipients)),
        "Cc": _header_of(message, "Cc"),
        "Date": format_datetime(sent) if sent else _header_of(message, "Date"),
        "Subject": message.subject or "",
    }
    return _write(headers, words, members, filename, media_type, limits)


def _header_of(message: Any, name: str) -> str:
    return next((value for key, value in message.message_headers.items() if key.lower() == name.lower()), "")


def _recipients(recipients: Iterable[Any]) -> Iterator[str]:
    for recipient in recipients:
        yield f"{recipient.name} <{recipient.email_address}>" if recipient.name else recipient.email_address


def _write(
    headers: dict[str, str], words: str, members: Members, filename: str, media_type: str, limits: ExtractionLimits
) -> ExtractedText:
    subject = plain_title(canonical(headers["Subject"])) or derive_title(filename)
    writer = MarkdownWriter(filename, limits)
    writer.add_heading(subject, 1)
    lines = [(name, " ".join(headers[name].split())) for name in _HEADERS]
    names = ", ".join(member.name for member in members.found)
    writer.add_paragraph(
        "\n".join(f"{name}: {_quote(value)}" for name, value in [*lines, ("Attachments", names)] if value)
    )
    writer.add_paragraph(words)
    return writer.finish(media_type=media_type, title=subject, members=members.found, notice=members.notice)


def _quote(value: str) -> str:
    """Addresses in angle brackets would be links."""
    return value.replace("<", "(").replace(">", ")")
