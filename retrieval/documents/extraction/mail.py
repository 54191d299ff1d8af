"""Extract e-mails (EML), Outlook messages (MSG) and mailboxes (mbox) with their attachments."""

from __future__ import annotations

import base64
import binascii
import email
import email.headerregistry
import email.policy
import io
import mimetypes
import posixpath
import re
import struct
from collections import Counter
from collections.abc import Iterable
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, cast
from urllib.parse import unquote

import compressed_rtf
import oxmsg
from oxmsg.domain import constants
from oxmsg.properties import Properties
from oxmsg.storage import Storage
from tnefparse import TNEF
from tnefparse.properties import MAPI_ATTACH_LONG_FILENAME as _LONG_NAME

from retrieval.documents import formats
from retrieval.documents.extraction import extract
from retrieval.documents.extraction.archive import MemberCollector
from retrieval.documents.extraction.calendars import extract_calendar
from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.html import parse_html, write_page
from retrieval.documents.extraction.signed import find_signed_content
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.text.encodings import find_python_codec, replace_unknown_encodings
from retrieval.text.extracted import ExtractedText, ExtractionLimits, derive_title, describe_left_out_parts, strip_title
from retrieval.text.word_lists import fill_in

HEADERS = ("From", "To", "Cc", "Bcc", "Date")
# Lines of "-" or "=", which Markdown would read as underlines of headings.
_RULE = re.compile(r"^(?=[ \t]*(?:-+|=+)[ \t]*$)", re.M)
_INDENT = re.compile(r"^[ \t]{4,}", re.M)
_HASHES = re.compile(r"^(#{1,6}) ", re.M)
_WORD = re.compile(r"\w+")
_ADDRESS = re.compile(r"https?://\S+|\bcid:\S+|<[^<>\s]+>")
_SHOWN_PART = re.compile(r"\bcid:([^\s\"'<>()]{1,300})", re.I)
_PGP_HEADERS = re.compile(r"^-----BEGIN PGP SIGNED MESSAGE-----\n(?:\w+: [^\n]*\n)*", re.M)
_PGP_BLOCK = re.compile(
    r"^-----BEGIN PGP (MESSAGE|SIGNATURE|PUBLIC KEY BLOCK)-----\n(?:(?!-----)[^\n]*\n)*-----END[^\n]*", re.M
)
# The name of an attachment without quotation marks.
_BARE_NAME = re.compile(r"\b(?:file)?name\s*=\s*([^\s\";][^\";\r\n]*)", re.I)
# The line before each message of a mailbox.
_MAILBOX_MARK = re.compile(
    rb"(?:\A|(?:(?<=\n\n)|(?<=\n\r\n))(?=[^\r\n]{1,200}\d\d:\d\d))From [^\r\n]{1,200}\r?\n(?=[!-9;-~]+:|>?From )"
)
_QUOTED_MARK = re.compile(rb"^>(>*From )", re.M)
_EMLX_COUNT = re.compile(rb"\A(\d{1,9})[ \t]*\r?\n(?=[!-9;-~]+:)")
_COMPRESSED = "x-compressed-rtf"
# A line that ends with a space continues on the next line (RFC 3676).
_FLOWED = re.compile(r"^(?!>|-- $)(.*) \n(?!>|-- \n)", re.M)
# Exceptions of the library for TNEF (winmail.dat).
_DAMAGED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    TypeError,
    ValueError,
    struct.error,
)
_registry = email.headerregistry.HeaderRegistry()
_POLICY = email.policy.default.clone(
    header_factory=lambda name, value: _registry(name, replace_unknown_encodings(value))
)
_PICTURES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".bmp", ".svg", ".emz", ".wmz", ""))
# A plain-text version with at most this many words may contain only a reference to the HTML version.
_LONGEST_STUB = 60
_STUB = re.compile(fill_in("<other_form>", "documents"), re.I)
# One version of a mail (plain text or HTML) is left out if at most this share or number of its words is missing in the
# other version.
_DIFFERENT_SHARE, _DIFFERENT_WORDS = 0.2, 5
_SIGNATURES = frozenset(("pkcs7-signature", "x-pkcs7-signature", "pgp-signature"))
_FOR_OTHER_PROGRAMS = frozenset(("x-amp-html", "watch-html"))
_WORDS = frozenset(("plain", "html", "enriched", "richtext", "rfc822-headers"))
# Programs cut long names into encoded words side by side.
_CUT_WORD = re.compile(r"\?=\s++=\?")
_NOT_BASE64 = re.compile(r"^(?:[-_*]{2}|\S++ ++\S)", re.M)
_MARK = re.compile(r"</?[a-z][^<>]{0,60}>", re.I)


def extract_mail(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    # Apple Mail adds the length before the message, and notes after it.
    if count := _EMLX_COUNT.match(data):
        data = data[count.end() : count.end() + int(count[1])]
    return _write_mail(_parse_message(data), filename, limits)


def extract_mailbox(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    """Return a text that lists the mailbox's messages, which become documents; or the only message's text."""
    marks = list(_MAILBOX_MARK.finditer(data))
    ends = [*(mark.start() for mark in marks[1:]), len(data)]
    messages = [_QUOTED_MARK.sub(rb"\1", data[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    if len(messages) == 1:
        return _write_mail(_parse_message(messages[0]), filename, limits)
    members = MemberCollector(filename, limits)
    title = derive_title(filename)
    writer = MarkdownWriter(filename, limits)
    writer.add_heading(title, 1)
    for message in messages:
        parsed = _parse_message(message)
        subject = _read_header(parsed, "Subject") or "message"
        members.add(f"{subject.replace('/', '-')}.eml", message)
        told = "; ".join(filter(None, (subject, _read_header(parsed, "From"), _read_header(parsed, "Date"))))
        writer.add_item(told.replace("<", "(").replace(">", ")"))
    return writer.build_extracted_text(title, members=members.member_files, left_out=members.left_out_parts)


def _parse_message(data: bytes) -> EmailMessage:
    if b"\0" in data[:200]:
        data = decode(data, "The message").encode()
    return email.message_from_bytes(data, policy=_POLICY)


def _write_mail(
    message: EmailMessage, filename: str, limits: ExtractionLimits, linked: Iterable[str] = ()
) -> ExtractedText:
    reader = _MailReader(filename, limits)
    reader.record_inline_attachments(message)
    reader.read(message)
    members = reader.members
    for name in linked:
        members.leave_out("linked", name)
    subject = strip_title(_read_header(message, "Subject")) or derive_title(filename)
    writer = MarkdownWriter(filename, limits)
    writer.add_heading(subject, 1)
    lines = [(name, _read_header(message, name)) for name in HEADERS]
    lines.append(("Attachments", ", ".join(member.name for member in members.member_files)))
    # Markdown would read an address in angle brackets as a link.
    headers = "\n".join(f"{name}: {value}" for name, value in lines if value)
    writer.add_paragraph(headers.replace("<", "(").replace(">", ")"))
    for block in reader.blocks:
        writer.add_paragraph(block)
    unread = [describe_left_out_parts(kind, (), count) for kind, count in reader.unread.items()]
    left_out = (*members.left_out_parts, *(each for found in unread for each in found))
    return writer.build_extracted_text(subject, members=members.member_files, left_out=left_out)


class _MailReader:
    def __init__(self, filename: str, limits: ExtractionLimits) -> None:
        self._filename = filename
        self._limits = limits
        self._shown: set[str] = set()
        self._calendars: set[str] = set()
        self.unread: Counter[str] = Counter()
        self.blocks: list[str] = []
        self.members = MemberCollector(filename, limits)

    def record_inline_attachments(self, message: EmailMessage) -> None:
        """Record attachments that the mail's HTML shows, such as logos. They do not become documents."""
        for part in message.walk():
            if part.get_content_type() == "text/html":
                page = cast(bytes, part.get_payload(decode=True) or b"").decode("ascii", "replace")
                self._shown |= {unquote(found) for found in _SHOWN_PART.findall(page)}

    def read(self, part: Any) -> None:
        kind, name = part.get_content_type(), _find_name(part)
        main, _, subtype = kind.partition("/")
        ending = posixpath.splitext(name)[1].lower()
        is_attached = part.get_content_disposition() == "attachment"
        if subtype in _SIGNATURES or (main == "text" and subtype in _FOR_OTHER_PROGRAMS and not is_attached):
            return
        if kind in ("multipart/encrypted", "application/x-microsoft-rpmsg-message") or ending == ".rpmsg":
            self.members.leave_out("encrypted", name or "message")
        elif main == "message":
            self._read_message(part, subtype, name)
        elif kind == "multipart/alternative":
            self._read_alternatives(list(part.iter_parts()))
        elif part.is_multipart():
            for each in part.iter_parts():
                self.read(each)
        elif subtype in ("pkcs7-mime", "x-pkcs7-mime") or ending == ".p7m":
            self._read_signed_message(part.get_payload(decode=True) or b"", name or "message")
        elif subtype in ("ms-tnef", "vnd.ms-tnef") or name.lower() == "winmail.dat":
            self._read_outlook_package(part.get_payload(decode=True) or b"", name or "winmail.dat")
        elif subtype in ("calendar", "ics") or ending == ".ics":
            self._read_calendar(part, name)
        elif subtype in ("rtf", "x-rtf", _COMPRESSED) and not is_attached and not name:
            self._add_rich_text(part.get_payload(decode=True) or b"", is_compressed=subtype == _COMPRESSED)
        elif not is_attached and (
            main == "multipart"
            or (main == "text" and subtype in _WORDS and not name)
            or (kind == "text/plain" and part.get_content_disposition() == "inline")
        ):
            self._add_text_block(_read_text(part, self._filename), subtype)
        else:
            data = cast(bytes, part.get_payload(decode=True) or b"")
            self._add_attachment(
                name or f"attachment{mimetypes.guess_extension(kind) or ''}", data, part.get("Content-ID")
            )

    def _add_text_block(self, text: str, subtype: str = "plain") -> None:
        if subtype == "html" or formats.is_html(formats.FileContent(text[:4096].encode(), "")):
            root = parse_html(text, self._filename) if text.strip() else None
            words, left_out = write_page(root) if root is not None else ("", ())
            self.blocks.append(words)
            self.unread.update({each.kind: each.count for each in left_out})
            return
        if subtype in ("enriched", "richtext"):
            text = _MARK.sub("", text)
        if subtype == "rfc822-headers":
            text = _list_headers(_parse_message(text.encode()), ("Subject", *HEADERS))
        for block in _PGP_BLOCK.finditer(text):
            if block[1] == "MESSAGE":
                self.members.leave_out("encrypted", "PGP message")
        text = _PGP_BLOCK.sub("", _PGP_HEADERS.sub("", text))
        # Markdown would find headings and code in plain text, so their signs are escaped.
        self.blocks.append(_HASHES.sub(r"\\\1 ", _INDENT.sub("   ", _RULE.sub("\n", text))).strip())

    def _add_rich_text(self, data: bytes, *, is_compressed: bool) -> None:
        try:
            data = _decompress_rich_text(data) if is_compressed else data
            self.blocks.append(extract(data, "message.rtf", limits=self._limits).text.strip())
        except DocumentRejected as error:
            if "holds no text" not in str(error):
                self.members.leave_out("unreadable", "message.rtf")

    def _read_alternatives(self, parts: list[Any]) -> None:
        """Add the text form or the HTML form to ``blocks``, or both if each has many words that the other lacks."""
        before = self.blocks
        forms: list[list[str]] = []
        others: list[list[str]] = []
        for part in parts:
            self.blocks = []
            self.read(part)
            (others if part.get_content_type() == "text/calendar" else forms).append(self.blocks)
        chosen = forms[0] if forms else []
        for form in forms[1:]:
            chosen = self._choose_form(chosen, form)
        self.blocks = [*before, *chosen, *(block for blocks in others for block in blocks)]

    def _choose_form(self, plain: list[str], rich: list[str]) -> list[str]:
        chosen, lost = _choose_fuller_form(plain, rich)
        if lost > _DIFFERENT_WORDS:
            self.unread["other_form"] += lost
        return chosen

    def _read_message(self, part: Any, subtype: str, name: str) -> None:
        inner = part.get_payload(0) if part.is_multipart() and part.get_payload() else part
        if subtype == "partial":
            self.members.leave_out("partial", name or "message")
        elif subtype == "external-body":
            self.members.leave_out("linked", name or str(part.get_param("url") or part.get_param("name") or "message"))
        elif subtype in ("rfc822", "global", "news"):
            data = inner.as_bytes()
            if not inner.keys():
                # Some programs encode an attached message in base64, which RFC 2046 forbids.
                data = _decode_base64(str(inner.get_payload())) or data
            subject = _read_header(_parse_message(data), "Subject").replace("/", "-")
            self.members.add(name or f"{subject or 'message'}.eml", data)
        else:
            reports = part.get_payload() if part.is_multipart() else []
            self._add_text_block("\n\n".join(_list_headers(report, report.keys()) for report in reports))

    def _read_calendar(self, part: Any, name: str) -> None:
        data = cast(bytes, part.get_payload(decode=True) or b"")
        try:
            events = extract_calendar(data, self._filename, "", self._limits)
        except DocumentRejected:
            self.members.leave_out("unreadable", name or "calendar")
            return
        words = events.text.partition("\n")[2].strip()
        if words not in self._calendars:
            self._calendars.add(words)
            self.blocks.append(words)
            for member in events.members:
                self.members.add(*member)

    def _add_attachment(self, name: str, data: bytes, content_id: Any) -> None:
        extension = posixpath.splitext(name)[1].lower()
        is_shown = str(content_id or "").strip().strip("<>") in self._shown
        if is_shown and extension in _PICTURES:
            self.members.leave_out("pictures")
        elif extension == ".pgp-encrypted" or data.lstrip().startswith(b"-----BEGIN PGP MESSAGE"):
            self.members.leave_out("encrypted", name)
        else:
            self.members.add(name, data)

    def _read_signed_message(self, data: bytes, name: str) -> None:
        content = find_signed_content(data)
        if content is None:
            self.members.leave_out("encrypted", name)
        else:
            inner = _parse_message(content)
            self.record_inline_attachments(inner)
            self.read(inner)

    def _read_outlook_package(self, data: bytes, name: str) -> None:
        try:
            package = TNEF(data, do_checksum=False)
        except _DAMAGED:
            self.members.leave_out("outlook", name)
            return
        before, self.blocks = self.blocks, []
        if page := _decode_text(package.htmlbody, package.codepage):
            self._add_text_block(page, "html")
        elif words := _decode_text(package.body, package.codepage):
            self._add_text_block(words)
        elif package._rtfbody:
            self._add_rich_text(bytes(package._rtfbody) + b"\0", is_compressed=True)
        has_words = any(self.blocks)
        self.blocks = self._choose_form(before, self.blocks)
        for attachment in package.attachments:
            long = next((each.data for each in attachment.mapi_attrs if each.name == _LONG_NAME), None)
            title = _decode_text(long or attachment._name, package.codepage) or "attachment"
            if hasattr(attachment, "embed"):
                inner = EmailMessage()
                inner["Subject"] = " ".join(title.split())
                _attach_file(inner, "winmail.dat", attachment.data)
                self.members.add(f"{title}.eml", bytes(inner))
            elif attachment.data:
                self._add_attachment(title, bytes(attachment.data), "")
            else:
                self.members.leave_out("outlook", title)
        if not package.attachments and not has_words:
            self.members.leave_out("outlook", name)


def _choose_fuller_form(plain: list[str], rich: list[str]) -> tuple[list[str], int]:
    first, second = _collect_words(plain), _collect_words(rich)
    is_stub = len(first) <= _LONGEST_STUB and any(map(_STUB.search, plain)) and len(first & second) < len(first) / 2
    if not first or (is_stub and second):
        return rich, 0
    forms = ((plain, second, len(second - first)), (rich, first, len(first - second)))
    for form, other, lost in sorted(forms, key=lambda each: each[2] > 0):
        if not lost or (lost <= max(_DIFFERENT_WORDS, _DIFFERENT_SHARE * len(other)) and lost < len(other) / 2):
            return form, lost
    return [*plain, *rich], 0


def _collect_words(blocks: list[str]) -> set[str]:
    return set(_WORD.findall(_ADDRESS.sub(" ", "\n".join(blocks)).casefold()))


def _list_headers(message: EmailMessage, names: Iterable[str]) -> str:
    return "\n".join(f"{name}: {value}" for name in names if (value := _read_header(message, name)))


def _decode_text(value: Any, codepage: str | None) -> str:
    if isinstance(value, bytes):
        value = value.decode(find_python_codec(codepage or "") or "windows-1252", "replace")
    return make_canonical_text(str(value or "")).strip()


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _find_name(part: Any) -> str:
    raw = {name.lower(): str(value) for name, value in part.raw_items()}
    for header in ("content-disposition", "content-type"):
        if bare := _BARE_NAME.search(raw.get(header, "")):
            return _decode(bare[1].strip())
    return part.get_filename() or ""


def _read_header(message: EmailMessage, name: str) -> str:
    raw = str(dict(message.raw_items()).get(name, ""))
    try:
        value: Any = message.get(name) or ""
        # The library returns only the first of addresses that are separated by semicolons, and puts spaces into names.
        is_sound = not getattr(value, "addresses", ()) or not (value.defects or _CUT_WORD.search(raw))
        text = str(value) if is_sound else _decode(raw)
    except (ValueError, IndexError, AttributeError):  # raised for damaged headers
        text = raw
    return " ".join(make_canonical_text(text).split())


def _read_text(part: Any, filename: str) -> str:
    # With decode=False, `get_payload` would use any Python codec that the mail names.
    sent, payload = str(part._payload).lstrip(), part.get_payload(decode=True) or b""
    is_base64 = part.get("Content-Transfer-Encoding", "").lower() == "base64"
    if is_base64 and (plain := _NOT_BASE64.search(sent)):
        # The mail is not encoded, or a mailing list added words to it that are not.
        encoded = sent[: plain.start()]
        if (begin := _decode_base64(encoded)) or not encoded:
            payload = b"\n".join(filter(None, (begin, sent[plain.start() :].encode("utf-8", "surrogateescape"))))
    is_html = part.get_content_subtype() == "html"
    text = decode(payload, filename, html=is_html, label=part.get_content_charset() or "") if payload.strip() else ""
    if part.get_param("format", "").lower() == "flowed":
        text = _FLOWED.sub(r"\1" if part.get_param("delsp", "").lower() == "yes" else r"\1 ", text)
    return text


_BY_VALUE, _BY_REFERENCE, _EMBEDDED = 1, (2, 3, 4, 7), 5
_RICH_TEXT = 0x1009
_EMBEDDED_MESSAGE = "__substg1.0_3701000D"
_EMBEDDED_HEADER_BYTES = 24
_MOST_DEPTH = 4


class _AttachedMessage(oxmsg.Message):
    """An Outlook message inside another one. The header before its properties is shorter than in a message file."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._own = Properties(storage, properties_header_offset=_EMBEDDED_HEADER_BYTES)

    @property
    def properties(self) -> Properties:
        return self._own


def extract_outlook_mail(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    mail, linked = _convert_message(oxmsg.Message.load(io.BytesIO(data)))
    return _write_mail(mail, filename, limits, linked)


def _read_headers(message: Any) -> dict[str, str]:
    sent = message.sent_date
    people = [f"{each.name} <{each.email_address}>" if each.name else each.email_address for each in message.recipients]
    found = {
        "From": message.sender or "",
        "To": _find_header(message, "To") or "; ".join(filter(None, people)),
        "Cc": _find_header(message, "Cc"),
        "Bcc": _find_header(message, "Bcc"),
        "Date": format_datetime(sent) if sent else _find_header(message, "Date"),
        "Subject": message.subject or "",
    }
    return {name: " ".join(make_canonical_text(_decode(value)).split()) for name, value in found.items()}


def _find_header(message: Any, name: str) -> str:
    headers = message.message_headers or {}
    return next((str(value) for key, value in headers.items() if key.lower() == name.lower()), "")


def _decode(value: str) -> str:
    try:
        return str(make_header(decode_header(replace_unknown_encodings(value)))) if "=?" in value else value
    except (MessageError, LookupError, ValueError):
        return value


def _convert_message(message: Any, depth: int = 0) -> tuple[EmailMessage, list[str]]:
    """Return an Outlook message as an EmailMessage, and the names of linked attachments."""
    mail = EmailMessage()
    for name, value in _read_headers(message).items():
        if value:
            mail[name] = value
    page = make_canonical_text(message.html_body or "")
    rich = message.properties.binary_prop_value(_RICH_TEXT)
    if rich and not page and not (message.body or "").strip():
        mail.set_content(rich, maintype="text", subtype=_COMPRESSED, cte="base64")
    else:
        mail.set_content(make_canonical_text(message.body or ""))
    if page:
        mail.add_alternative(page, subtype="html")
    linked = []
    for attachment in message.attachments:
        properties = attachment.properties
        method = properties.int_prop_value(constants.PID_ATTACH_METHOD)
        name = attachment.file_name or properties.str_prop_value(constants.PID_ATTACH_FILENAME) or ""
        if method == _EMBEDDED:
            storages = attachment._storage.storages
            inner = next((_AttachedMessage(each) for each in storages if each.name == _EMBEDDED_MESSAGE), None)
            if inner is not None and depth < _MOST_DEPTH:
                subject = inner.subject.replace("/", "-").strip() or "message"
                _attach_file(mail, f"{subject}.eml", bytes(_convert_message(inner, depth + 1)[0]))
        elif method in _BY_REFERENCE:
            linked.append(name or "attachment")
        else:
            name = name or f"attachment{properties.str_prop_value(constants.PID_ATTACH_EXTENSION) or ''}"
            content_id = properties.str_prop_value(constants.PID_ATTACH_CONTENT_ID)
            _attach_file(mail, name, attachment.file_bytes or b"", content_id)
    return mail, linked


def _decompress_rich_text(rich: bytes) -> bytes:
    try:
        return bytes(compressed_rtf.decompress(rich))
    except Exception as error:
        # the library has only this general exception
        raise DocumentRejected("message.rtf is damaged.") from error


def _attach_file(mail: EmailMessage, name: str, data: bytes, content_id: str | None = None) -> None:
    cid = f"<{content_id}>" if content_id else None
    mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=name, cid=cid)
