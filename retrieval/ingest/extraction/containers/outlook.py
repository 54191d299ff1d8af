"""MSG: an Outlook message, read as any other mail. Messages attached to it become mails of their own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

import oxmsg
from oxmsg.domain import constants
from oxmsg.properties import Properties
from oxmsg.storage import Storage

from retrieval.ingest.extraction.containers.mail import (
    HEADERS,
    Attachment,
    has_words,
    quote_plain,
    read_page,
    write_mail,
)
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits

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
    message = oxmsg.Message.load(io.BytesIO(data))
    words = quote_plain(canonical(message.body or ""))
    page = canonical(message.html_body or "")
    if not has_words(words) and page:
        words = read_page(page, filename)
    return write_mail(_headers(message), words, page, _attachments(message), filename, media_type, limits)


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
        return str(make_header(decode_header(value))) if "=?" in value else value
    except (MessageError, LookupError, ValueError):
        return value


def _attachments(message: Any, depth: int = 0) -> Iterator[Attachment]:
    for attachment in message.attachments:
        properties = attachment.properties
        method = properties.int_prop_value(constants.PID_ATTACH_METHOD)
        name = attachment.file_name or properties.str_prop_value(constants.PID_ATTACH_FILENAME) or ""
        if method == _EMBEDDED:
            inner = _read_embedded(attachment)
            if inner is not None and depth < _MOST_DEPTH:
                subject = inner.subject.replace("/", "-").strip() or "message"
                yield Attachment(f"{subject}.eml", _as_mail(inner, depth + 1))
        elif method in _BY_REFERENCE:
            yield Attachment(name or "attachment", None)
        else:
            yield Attachment(
                name or f"attachment{properties.str_prop_value(constants.PID_ATTACH_EXTENSION) or ''}",
                attachment.file_bytes or b"",
                properties.str_prop_value(constants.PID_ATTACH_CONTENT_ID) or "",
            )


def _read_embedded(attachment: Any) -> _Embedded | None:
    storages = attachment._storage.storages
    return next((_Embedded(each) for each in storages if each.name == _EMBEDDED_MESSAGE), None)


def _as_mail(message: Any, depth: int) -> bytes:
    """The message in the form that mails have elsewhere."""
    mail = EmailMessage()
    for name, value in _headers(message).items():
        if value and name in (*HEADERS, "Subject"):
            mail[name] = value
    mail.set_content(message.body or "")
    if page := message.html_body:
        mail.add_alternative(page, subtype="html")
    for found in _attachments(message, depth):
        if found.data is not None:
            cid = f"<{found.content_id}>" if found.content_id else None
            mail.add_attachment(
                found.data, maintype="application", subtype="octet-stream", filename=found.name, cid=cid
            )
    return bytes(mail)
