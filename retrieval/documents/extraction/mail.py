"""E-mails (EML) and messages of Outlook (MSG): their headers and words; what is attached is a document of its own."""

from __future__ import annotations

import email
import email.headerregistry
import email.policy
import io
import posixpath
import re
from collections.abc import Iterable, Iterator
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, cast
from urllib.parse import unquote

import oxmsg
from oxmsg.domain import constants
from oxmsg.properties import Properties
from oxmsg.storage import Storage

from retrieval.documents.extraction.archive import Members
from retrieval.documents.extraction.decoding import canonical, decode
from retrieval.documents.extraction.html import convert_html, parse_html
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.text.encodings import codec_of, with_known_encodings
from retrieval.text.extracted import ExtractedText, ExtractionLimits, derive_title, plain_title

HEADERS = ("From", "To", "Cc", "Date")
# Lines that Markdown would take for the rule below a heading, and indentation that it would take for code.
_RULE = re.compile(r"^(?=[ \t]*(?:-+|=+)[ \t]*$)", re.M)
_INDENT = re.compile(r"^[ \t]{4,}", re.M)
_HASHES = re.compile(r"^(#{1,6}) ", re.M)
_WORD = re.compile(r"\w")
_SHOWN_PART = re.compile(r"\bcid:([^\s\"'<>()]{1,300})", re.I)
_registry = email.headerregistry.HeaderRegistry()
_POLICY = email.policy.default.clone(header_factory=lambda name, value: _registry(name, with_known_encodings(value)))
_PICTURES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".bmp", ".svg", ".emz", ".wmz", ""))


def extract_mail(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    message = email.message_from_bytes(data, policy=_POLICY)
    return _write_mail(message, filename, limits)


def _write_mail(
    message: EmailMessage, filename: str, limits: ExtractionLimits, linked: Iterable[str] = ()
) -> ExtractedText:
    """The mail as text. The pictures that its page shows, such as the logos of signatures, are no documents, nor is
    what is only ``linked`` to."""
    body = message.get_body(preferencelist=("plain", "html"))
    rich = message.get_body(preferencelist=("html",))
    page = _read_text(rich, filename) if rich is not None else ""
    words = _read_text(body, filename) if body is not None and body is not rich else ""
    # Markdown finds no headings and no code in it.
    words = _HASHES.sub(r"\\\1 ", _INDENT.sub("   ", _RULE.sub("\n", words))).strip()
    if not _WORD.search(words) and page:
        root = parse_html(page, filename) if page.strip() else None
        words = convert_html(root) if root is not None else ""
    members = Members(filename, limits)
    shown = {unquote(found) for found in _SHOWN_PART.findall(page)}
    for name, data, content_id in _attachments(message, (body, rich)):
        is_picture = posixpath.splitext(name)[1].lower() in _PICTURES
        if is_picture and content_id.strip().strip("<>") in shown:
            members.leave_out("pictures")
        else:
            members.add(name, data)
    for name in linked:
        members.leave_out("linked", name)
    subject = plain_title(_header(message, "Subject")) or derive_title(filename)
    writer = MarkdownWriter(filename, limits)
    writer.add_heading(subject, 1)
    lines = [(name, _header(message, name)) for name in HEADERS]
    lines.append(("Attachments", ", ".join(member.name for member in members.found)))
    # Addresses in angle brackets would be links.
    headers = "\n".join(f"{name}: {value}" for name, value in lines if value)
    writer.add_paragraph(headers.replace("<", "(").replace(">", ")"))
    writer.add_paragraph(words)
    return writer.finish(subject, members=members.found, left_out=members.left_out)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(canonical(str(message.get(name) or "")).split())
    except (ValueError, IndexError, AttributeError):  # the library's parsers of damaged headers
        return " ".join(canonical(str(dict(message.raw_items()).get(name, ""))).split())


def _read_text(part: Any, filename: str) -> str:
    payload = part.get_payload(decode=True) or b""
    label = part.get_content_charset() or "utf-8"
    try:
        # Programs that send UTF-8 as ASCII are more than those that send Windows-1252 so.
        return canonical(payload.decode("ascii" if label == "us-ascii" else codec_of(label)))
    except (LookupError, ValueError):
        is_html = part.get_content_subtype() == "html"
        return decode(payload, filename, html=is_html) if payload.strip() else ""


def _attachments(message: EmailMessage, words: tuple[Any, ...]) -> Iterator[tuple[str, bytes, str]]:
    """Name, bytes and content id of each, also of those that stand among the words, but for the words themselves."""
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
            yield name, inner.as_bytes(), ""  # type: ignore[union-attr]
        elif name:
            data = cast(bytes, part.get_payload(decode=True) or b"")
            yield name, data, str(part.get("Content-ID") or "")


# PidTagAttachMethod.
_BY_VALUE, _BY_REFERENCE, _EMBEDDED = 1, (2, 3, 4, 7), 5
_EMBEDDED_MESSAGE = "__substg1.0_3701000D"
_EMBEDDED_HEADER_BYTES = 24
# More than are read as documents of documents.
_MOST_DEPTH = 4


class _Embedded(oxmsg.Message):
    """A message in a message, whose properties begin earlier than those of a file's own."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._own = Properties(storage, properties_header_offset=_EMBEDDED_HEADER_BYTES)

    @property
    def properties(self) -> Properties:
        return self._own


def extract_outlook_mail(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    mail, linked = _as_mail(oxmsg.Message.load(io.BytesIO(data)))
    return _write_mail(mail, filename, limits, linked)


def _headers(message: Any) -> dict[str, str]:
    sent = message.sent_date
    people = [f"{each.name} <{each.email_address}>" if each.name else each.email_address for each in message.recipients]
    found = {
        "From": message.sender or "",
        "To": _header_of(message, "To") or "; ".join(filter(None, people)),
        "Cc": _header_of(message, "Cc"),
        "Date": format_datetime(sent) if sent else _header_of(message, "Date"),
        "Subject": message.subject or "",
    }
    return {name: " ".join(canonical(_decode(value)).split()) for name, value in found.items()}


def _header_of(message: Any, name: str) -> str:
    headers = message.message_headers or {}
    return next((str(value) for key, value in headers.items() if key.lower() == name.lower()), "")


def _decode(value: str) -> str:
    """The words of a header that is written in ASCII, such as =?GBK?B?...?=."""
    try:
        return str(make_header(decode_header(with_known_encodings(value)))) if "=?" in value else value
    except (MessageError, LookupError, ValueError):
        return value


def _as_mail(message: Any, depth: int = 0) -> tuple[EmailMessage, list[str]]:
    """The message in the form that mails have elsewhere, and the names of what is only linked to."""
    mail = EmailMessage()
    for name, value in _headers(message).items():
        if value:
            mail[name] = value
    mail.set_content(canonical(message.body or ""))
    if page := canonical(message.html_body or ""):
        mail.add_alternative(page, subtype="html")
    linked = []
    for attachment in message.attachments:
        properties = attachment.properties
        method = properties.int_prop_value(constants.PID_ATTACH_METHOD)
        name = attachment.file_name or properties.str_prop_value(constants.PID_ATTACH_FILENAME) or ""
        if method == _EMBEDDED:
            storages = attachment._storage.storages
            inner = next((_Embedded(each) for each in storages if each.name == _EMBEDDED_MESSAGE), None)
            if inner is not None and depth < _MOST_DEPTH:
                subject = inner.subject.replace("/", "-").strip() or "message"
                _attach(mail, f"{subject}.eml", bytes(_as_mail(inner, depth + 1)[0]))
        elif method in _BY_REFERENCE:
            linked.append(name or "attachment")
        else:
            name = name or f"attachment{properties.str_prop_value(constants.PID_ATTACH_EXTENSION) or ''}"
            content_id = properties.str_prop_value(constants.PID_ATTACH_CONTENT_ID)
            _attach(mail, name, attachment.file_bytes or b"", content_id)
    return mail, linked


def _attach(mail: EmailMessage, name: str, data: bytes, content_id: str | None = None) -> None:
    cid = f"<{content_id}>" if content_id else None
    mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=name, cid=cid)
