"""Detect file formats, and refuse unsupported formats with a reason.

To add a format, write its extractor, and add a :class:`Format` to ``KNOWN_FORMATS`` or by :func:`register_formats`.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import PurePosixPath

from retrieval.exceptions import DocumentRejected
from retrieval.media_types import (
    ASCIIDOC,
    CSV,
    DOC,
    DOCBOOK,
    DOCX,
    EML,
    EPUB,
    FICTION_BOOK,
    HTML,
    ICALENDAR,
    JSON,
    JSON_LINES,
    LATEX,
    MARKDOWN,
    MBOX,
    MHTML,
    MSG,
    NOTEBOOK,
    ODP,
    ODS,
    ODT,
    ORG,
    PDF,
    PLAIN,
    PPT,
    PPTX,
    RST,
    RTF,
    SUBTITLES,
    TSV,
    XLS,
    XLSX,
    ZIP,
)

SOURCE_CODE = {
    "text/x-python": "py pyi",
    "text/javascript": "js mjs cjs jsx",
    "text/x-typescript": "ts tsx",
    "text/x-java": "java",
    "text/x-kotlin": "kt",
    "text/x-scala": "scala",
    "text/x-swift": "swift",
    "text/x-csharp": "cs",
    "text/x-c": "c h",
    "text/x-c++": "cc cpp cxx hpp",
    "text/x-go": "go",
    "text/x-rust": "rs",
    "text/x-ruby": "rb",
    "text/x-php": "php",
    "text/x-shellscript": "sh bash zsh",
    "text/x-powershell": "ps1",
    "text/x-sql": "sql",
    "text/x-yaml": "yaml yml",
    "text/x-toml": "toml",
    "text/x-ini": "ini cfg conf properties env",
    "text/xml": "xml xsd",
    "text/css": "css scss",
    "text/x-lua": "lua",
    "text/x-r": "r",
    "text/x-perl": "pl",
    "text/x-terraform": "tf",
    "text/x-protobuf": "proto",
    "text/x-graphql": "graphql",
}


# A Word document has a few dozen entries.
_MOST_ENTRIES = 20_000
_ENTRY = b"PK\x01\x02"
_HTML_TAG = re.compile(rb"<(?:!doctype\s+html|html[\s>])", re.I)
_HTML_LOOKED_AT = 4096
_LONGEST_POINTER = 1024
_MAILBOX = re.compile(rb"From [^\r\n]{1,200}\r?\n[A-Za-z][\w-]*:")
_CALENDAR = re.compile(rb"(?:\xef\xbb\xbf)?\s{0,9}BEGIN:V(?:CALENDAR|EVENT|TODO|JOURNAL)\s", re.I)
_RELATED = re.compile(rb"^content-type:\s*multipart/related\b", re.I | re.M)
_MIME_HEADER = re.compile(rb"^(?:mime-version|content-type|received|message-id):", re.I | re.M)
_MAIL_HEADER = re.compile(rb"^(?:from|to|subject|date|received|return-path):", re.I | re.M)
XML_WORKBOOK = b"urn:schemas-microsoft-com:office:spreadsheet"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WEBP = re.compile(rb"RIFF.{4}WEBP", re.S)
_BITMAP = re.compile(rb"BM.{4}\0{4}", re.DOTALL)
_HEIC = re.compile(rb"\0\0.{2}ftyp(?:hei[cx]|hev[cx]|mif1|msf1|avi[fs])", re.DOTALL)
# A text may begin with "RIFF is a container", so the pattern has more than the first letters.
_RECORDING = re.compile(rb"ID3[\2-\4]|OggS\0|RIFF.{4}(?:WAVE|AVI )|\x1aE\xdf\xa3|\0\0.{2}ftyp", re.DOTALL)


class ViewerLayout(Enum):
    """How the source viewer shows the text of a document."""

    MARKDOWN = "laid out from its Markdown"
    CONVERTED = "laid out from the Markdown it is converted to"
    PRINTED = "as text, with its pages as pictures"
    PROSE = "as text, with the lines of a paragraph joined"
    TEXT = "as text, line by line"
    TABLES = "as tables, each of its sheets below its name"
    SLIDES = "slide by slide, with the notes"
    RECORDS = "as text, across the whole width"
    CODE = "as numbered lines"


@dataclass(frozen=True)
class FileContent:
    data: bytes
    filename: str

    @cached_property
    def archive_names(self) -> frozenset[str]:
        """The names of the files in a ZIP archive; empty for other files.

        Raises: DocumentRejected for a damaged or too large archive.
        """
        if not self.data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return frozenset()
        # Parsed entries take much memory, so entries are counted before.
        if self.data.count(_ENTRY) > _MOST_ENTRIES:
            raise DocumentRejected(
                f"{self.filename} is an archive of more than {_MOST_ENTRIES:,} files: "
                "save it again in its program and upload that."
            )
        try:
            with zipfile.ZipFile(io.BytesIO(self.data)) as archive:
                return frozenset(archive.namelist())
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, UnicodeError) as error:
            raise DocumentRejected(
                f"{self.filename} is a damaged ZIP or Office file: save it again in its program and upload that."
            ) from error

    @cached_property
    def archive_type(self) -> str:
        """The media type that an OpenDocument file or an EPUB declares; empty for other files."""
        if "mimetype" not in self.archive_names:
            return ""
        try:
            with zipfile.ZipFile(io.BytesIO(self.data)) as archive, archive.open("mimetype") as entry:
                return entry.read(100).decode("ascii", "replace").strip()
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, RuntimeError, zlib.error):
            return ""


Recogniser = Callable[[FileContent], bool]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format that the site recognises.

    - ``kind`` names it in sentences ("a Word document"), ``label`` in lists ("DOCX").
    - ``extractor`` is "package.module:function". A format without one is refused, with the message ``refusal`` if any.
    - ``recognise`` detects the format by a file's bytes. ``recognise_text`` does so in files that otherwise count as
      plain text.
    - ``may_be_scanned``: the extractor also accepts pages that OCR has read.
    """

    kind: str
    extensions: tuple[str, ...] = ()
    media_type: str = ""
    label: str = ""
    extractor: str = ""
    view: ViewerLayout = ViewerLayout.TEXT
    recognise: Recogniser | None = None
    recognise_text: Recogniser | None = None
    may_be_scanned: bool = False
    refusal: str = ""


def build_signature_detector(*signatures: bytes) -> Recogniser:
    return lambda content: content.data.startswith(signatures)


def build_member_detector(prefix: str) -> Recogniser:
    return lambda content: any(name.startswith(prefix) for name in content.archive_names)


def build_zip_extension_detector(extension: str) -> Recogniser:
    """Return a function that detects a ZIP archive with this extension."""
    return lambda content: (
        content.data.startswith((b"PK", OLE)) and content.filename.casefold().endswith(f".{extension}")
    )


def build_archive_type_detector(*media_types: str) -> Recogniser:
    return lambda content: content.archive_type in media_types


def is_pdf(content: FileContent) -> bool:
    # Bytes may precede the signature, but a text that mentions it is no PDF.
    return b"%PDF-" in content.data[:1024] and content.data[:64].lstrip()[:1] not in (b"<", b"#", b"{")


_MAY_BE_PAGES = frozenset({"doc", "dot"})


def is_html(content: FileContent) -> bool:
    """Return whether the file is an HTML page."""
    left = content.data[:_HTML_LOOKED_AT].removeprefix(b"\xef\xbb\xbf").lstrip()
    if left.startswith(b"<?xml"):
        left = left.partition(b">")[2].lstrip()
    while left.startswith(b"<!--"):
        left = left[4:].partition(b"-->")[2].lstrip()
    return bool(_HTML_TAG.match(left))


def is_git_lfs_pointer(data: bytes) -> bool:
    return len(data) < _LONGEST_POINTER and data.startswith(b"version https://git-lfs.github.com/spec/")


def is_saved_page(content: FileContent) -> bool:
    is_mail_by_name = content.filename.lower().endswith((".eml", ".emlx"))
    return not is_mail_by_name and bool(_RELATED.search(_read_mail_headers(content.data)))


def is_mail(content: FileContent) -> bool:
    headers = _read_mail_headers(content.data)
    return bool(_MIME_HEADER.search(headers)) and len(_MAIL_HEADER.findall(headers)) > 1


def _read_mail_headers(data: bytes) -> bytes:
    begin = data[:_HTML_LOOKED_AT].removeprefix(b"\xef\xbb\xbf").lstrip()
    return re.split(rb"\r?\n\r?\n", begin, maxsplit=1)[0] if re.match(rb"[A-Za-z][\w-]*:", begin) else b""


def match_ole_entry(name: str) -> Recogniser:
    mark = name.encode("utf-16-le")
    return lambda content: content.data.startswith(OLE) and mark in content.data


def is_text_table(data: bytes) -> bool:
    """Return whether a file has an HTML table, or text with delimiters."""
    first = data[:_HTML_LOOKED_AT].replace(b"\0", b"").partition(b"\n")[0]
    is_text = not re.search(b"[\x01-\x08\x0e-\x1f]", first)
    return is_text and (b"<table" in data.lower() or re.search(b"[\t;,|]", first) is not None)


def is_workbook(content: FileContent) -> bool:
    names = content.archive_names
    has_book = "[Content_Types].xml" in names and any(re.search(r"(?:^|[/\\])workbook\.xml$", name) for name in names)
    return has_book or any(name.startswith(("xl/", "xl\\")) for name in names)


def is_old_workbook(content: FileContent) -> bool:
    if XML_WORKBOOK in content.data[:_HTML_LOOKED_AT]:
        return content.data.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<?xml")
    holds = [
        match_ole_entry(name)(content)
        for name in ("Workbook", "WORKBOOK", "Book", "WordDocument", "PowerPoint Document")
    ]
    return any(holds[:3]) and not any(holds[3:])


_IN = "retrieval.documents.extraction."


def _refuse_format(kind: str, extensions: str, advice: str, recognise: Recogniser | None = None) -> Format:
    return Format(kind, tuple(extensions.split()), recognise=recognise, refusal=f"{kind}: {advice} and upload that.")


def _build_image_format(
    kind: str, extensions: tuple[str, ...], media_type: str, label: str, recognise: Recogniser
) -> Format:
    extractor = _IN + "pdf:extract_picture"
    return Format(kind, extensions, media_type, label, extractor, ViewerLayout.PRINTED, recognise, may_be_scanned=True)


# fmt: off
_ENGINE = _IN + "engine:extract_by_engine"
_TABLE, _SOURCE = _IN + "tabular:extract_table", _IN + "source_code:extract_source"
PLAIN_TEXT = Format(
    "text", ("txt", "text", "log"), PLAIN, "plain text", _IN + "plain:extract_plain", ViewerLayout.PROSE
)
KNOWN_FORMATS = (
    Format(
        "a Git LFS pointer",
        recognise=lambda content: is_git_lfs_pointer(content.data),
        refusal="a Git LFS pointer, not the file: take it from a clone made with Git LFS.",
    ),
    Format(
        "Markdown", ("md", "markdown", "mdx"), MARKDOWN, "Markdown", _IN + "markdown:extract_markdown",
        ViewerLayout.MARKDOWN,
    ),
    Format(
        "HTML", ("html", "htm", "xhtml"), HTML, "HTML", _IN + "html:extract_html", ViewerLayout.CONVERTED,
        recognise_text=is_html,
    ),
    Format(
        "a PDF", ("pdf",), PDF, "PDF", _IN + "pdf:extract_pdf", ViewerLayout.PRINTED, is_pdf,
        may_be_scanned=True,
    ),
    Format(
        "a Word document", ("docx", "docm", "dotx", "dotm"), DOCX, "DOCX", _IN + "word:extract_docx",
        ViewerLayout.CONVERTED,
        build_member_detector("word/document.xml"),
    ),
    Format(
        "a binary Excel workbook", ("xlsb",), "application/vnd.ms-excel.sheet.binary.macroenabled.12", "XLSB",
        _IN + "sheets:extract_unformatted_workbook", ViewerLayout.TABLES, build_member_detector("xl/workbook.bin"),
    ),
    Format(
        "an Excel workbook", ("xlsx", "xlsm", "xltx", "xltm"), XLSX, "XLSX", _IN + "sheets:extract_workbook",
        ViewerLayout.TABLES, is_workbook,
    ),
    Format(
        "an old Excel workbook", ("xls", "xlt"), XLS, "XLS", _IN + "old_workbooks:extract_old_workbook",
        ViewerLayout.TABLES,
        is_old_workbook,
    ),
    Format(
        "an OpenDocument spreadsheet", ("ods", "ots"), ODS, "ODS",
        _IN + "opendocument_sheet:extract_opendocument_sheet", ViewerLayout.TABLES,
        build_archive_type_detector(ODS, f"{ODS}-template"),
    ),
    Format(
        "a PowerPoint presentation", ("pptx", "pptm", "ppsx", "ppsm", "potx", "potm"), PPTX, "PPTX",
        _IN + "presentation:extract_presentation", ViewerLayout.SLIDES, build_member_detector("ppt/presentation.xml"),
    ),
    Format(
        "an OpenDocument presentation", ("odp", "otp"), ODP, "ODP", _IN + "opendocument:extract_opendocument_slides",
        ViewerLayout.SLIDES, build_archive_type_detector(ODP, f"{ODP}-template"),
    ),
    Format(
        "an OpenDocument text", ("odt", "ott"), ODT, "ODT", _IN + "opendocument:extract_opendocument_text",
        ViewerLayout.CONVERTED, build_archive_type_detector(ODT, f"{ODT}-template"),
    ),
    Format(
        "an EPUB book", ("epub",), EPUB, "EPUB", _IN + "book:extract_book", ViewerLayout.CONVERTED,
        build_member_detector("META-INF/container.xml"),
    ),
    Format(
        "an RTF document", ("rtf",), RTF, "RTF", _ENGINE,
        ViewerLayout.CONVERTED, build_signature_detector(b"{\\rtf", b"{\\pard"),
    ),
    Format(
        "an old Word document", ("doc", "dot"), DOC, "DOC", _ENGINE,
        ViewerLayout.CONVERTED, match_ole_entry("WordDocument"),
    ),
    Format(
        "an old PowerPoint presentation", ("ppt", "pps", "pot"), PPT, "PPT", _ENGINE, ViewerLayout.CONVERTED,
        match_ole_entry("PowerPoint Document"),
    ),
    Format("a notebook", ("ipynb",), NOTEBOOK, "Jupyter notebook", _ENGINE, ViewerLayout.CONVERTED),
    Format("AsciiDoc", ("adoc", "asciidoc"), ASCIIDOC, "AsciiDoc", _ENGINE, ViewerLayout.CONVERTED),
    Format("Org", ("org",), ORG, "Org", _ENGINE, ViewerLayout.CONVERTED),
    Format("LaTeX", ("tex", "latex"), LATEX, "LaTeX", _ENGINE, ViewerLayout.CONVERTED),
    Format("a FictionBook", ("fb2",), FICTION_BOOK, "FictionBook", _ENGINE, ViewerLayout.CONVERTED),
    Format("DocBook", ("docbook", "dbk"), DOCBOOK, "DocBook", _ENGINE, ViewerLayout.CONVERTED),
    Format(
        "subtitles", ("srt", "vtt"), SUBTITLES, "subtitles", _IN + "subtitles:extract_subtitles",
        ViewerLayout.CONVERTED,
    ),
    Format(
        "an e-mail", ("eml", "emlx"), EML, "EML", _IN + "mail:extract_mail",
        ViewerLayout.CONVERTED, recognise_text=is_mail
    ),
    Format(
        "a mailbox", ("mbox", "mbx"), MBOX, "MBOX", _IN + "mail:extract_mailbox", ViewerLayout.CONVERTED,
        lambda content: bool(_MAILBOX.match(content.data)),
    ),
    Format(
        "a saved web page", ("mht", "mhtml"), MHTML, "MHTML", _IN + "saved_page:extract_saved_page",
        ViewerLayout.CONVERTED,
        is_saved_page,
    ),
    Format(
        "a calendar", ("ics", "ical", "vcs"), ICALENDAR, "iCalendar", _IN + "calendars:extract_calendar",
        ViewerLayout.CONVERTED, lambda content: bool(_CALENDAR.match(content.data)),
    ),
    Format(
        "an Outlook message", ("msg",), MSG, "MSG", _IN + "mail:extract_outlook_mail", ViewerLayout.CONVERTED,
        match_ole_entry("__properties_version1.0"),
    ),
    _build_image_format("a PNG image", ("png",), "image/png", "PNG", build_signature_detector(b"\x89PNG\r\n\x1a\n")),
    _build_image_format(
        "a JPEG image", ("jpg", "jpeg"), "image/jpeg", "JPEG", build_signature_detector(b"\xff\xd8\xff")
    ),
    _build_image_format("a GIF image", ("gif",), "image/gif", "GIF", build_signature_detector(b"GIF87a", b"GIF89a")),
    _build_image_format(
        "a TIFF image", ("tif", "tiff"), "image/tiff", "TIFF", build_signature_detector(b"II*\x00", b"MM\x00*")
    ),
    _build_image_format(
        "a WebP image", ("webp",), "image/webp", "WebP", lambda content: bool(_WEBP.match(content.data))
    ),
    PLAIN_TEXT,
    Format("text", ("rst", "rest"), RST, "reStructuredText", _IN + "plain:extract_plain", ViewerLayout.CONVERTED),
    Format("a table", ("csv",), CSV, "CSV", _TABLE, ViewerLayout.TABLES),
    Format("a table", ("tsv", "tab"), TSV, "TSV", _TABLE, ViewerLayout.TABLES),
    Format("JSON", ("json",), JSON, "JSON", _SOURCE, ViewerLayout.RECORDS),
    Format("JSON", ("jsonl", "ndjson"), JSON_LINES, "JSON", _IN + "tabular:extract_records", ViewerLayout.RECORDS),
    *(
        Format("source code", tuple(extensions.split()), media_type, "source code", _SOURCE, ViewerLayout.CODE)
        for media_type, extensions in SOURCE_CODE.items()
    ),
    Format("an OpenDocument drawing, chart or formula", ("odg", "otg"), recognise=build_member_detector("content.xml")),
    _refuse_format("a Visio drawing", "vsdx vsd", "export it as PDF", build_member_detector("visio/")),
    _refuse_format(
        "an Apple Pages document", "pages", "export it as Word or PDF", build_zip_extension_detector("pages")
    ),
    _refuse_format(
        "an Apple Numbers spreadsheet", "numbers", "export it as Excel", build_zip_extension_detector("numbers")
    ),
    _refuse_format(
        "an Apple Keynote presentation", "", "export it as PowerPoint or PDF", build_zip_extension_detector("key")
    ),
    _refuse_format(
        "an iWork file", "", "export it as Word, Excel, PowerPoint or PDF", build_member_detector("Index/Document.iwa")
    ),
    # This format must come after all others whose files are ZIP archives.
    Format(
        "a ZIP archive", ("zip",), ZIP, "ZIP", _IN + "archive:extract_archive", ViewerLayout.CONVERTED,
        build_signature_detector(b"PK\x03\x04", b"PK\x05\x06"),
    ),
    Format(
        "a protected Office file",
        recognise=match_ole_entry("EncryptedPackage"),
        refusal="password-protected: remove the password in its program and upload it again.",
    ),
    _refuse_format("a OneNote section", "one onetoc2", "export it as Word or PDF"),
    _refuse_format("a Publisher file", "", "export it as PDF", build_zip_extension_detector("pub")),
    _refuse_format("a Project plan", "mpp", "export it as Excel or PDF"),
    _refuse_format("a WordPerfect document", "wpd", "save it as Word or PDF", build_signature_detector(b"\xffWPC")),
    _refuse_format("an Office file of another program", "", "export it as PDF", build_signature_detector(OLE)),
    Format("a bitmap image", ("bmp",), recognise=lambda content: bool(_BITMAP.match(content.data))),
    _refuse_format(
        "a HEIC or AVIF image", "heic heif avif", "save it as JPEG or PNG",
        lambda content: bool(_HEIC.match(content.data)),
    ),
    Format(
        "an archive of another kind than ZIP",
        recognise=build_signature_detector(
            b"\x1f\x8b", b"7z\xbc\xaf", b"Rar!\x1a\x07", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"
        ),
    ),
    Format("an audio or video file", recognise=lambda content: bool(_RECORDING.match(content.data))),
    Format(
        "a program, a database or a font",
        recognise=build_signature_detector(
            b"\x7fELF", b"MZ\x90\x00", b"\xca\xfe\xba\xbe", b"SQLite format 3\x00", b"PAR1", b"wOFF", b"wOF2"
        ),
    ),
    Format("a PostScript file", recognise=build_signature_detector(b"%!PS")),
)
# fmt: on


_formats: list[Format] = list(KNOWN_FORMATS)


def register_formats(*formats: Format) -> None:
    """Add formats, which take precedence over all others."""
    _formats[:0] = formats


def read_formats() -> list[Format]:
    return [known for known in _formats if known.extractor]


def find_format(media_type: str) -> Format | None:
    return next((known for known in read_formats() if known.media_type == media_type), None)


def get_viewer_layout(media_type: str) -> ViewerLayout:
    known = find_format(media_type)
    return known.view if known else ViewerLayout.TEXT


def get_page_unit(media_type: str) -> str:
    return "slide" if get_viewer_layout(media_type) is ViewerLayout.SLIDES else "page"


def is_code(media_type: str) -> bool:
    return get_viewer_layout(media_type) is ViewerLayout.CODE or media_type == JSON


def list_supported_formats() -> str:
    *labels, last = dict.fromkeys(known.label for known in read_formats())
    return f"{', '.join(labels)} and {last}"


def list_accepted_files() -> str:
    """Return a file input's ``accept``: all supported files, and texts with any extension."""
    return ",".join(["text/*", *(f".{extension}" for known in read_formats() for extension in known.extensions)])


def detect_format(data: bytes, filename: str) -> Format:
    """Return the format of a file by its content, or else by its extension.

    Raises: DocumentRejected for an unsupported format, or a wrong extension.
    """
    content = FileContent(data, filename)
    if by_content := next((known for known in _formats if known.recognise and known.recognise(content)), None):
        if not by_content.extractor:
            raise _make_rejection(by_content, filename)
        return by_content
    extension = PurePosixPath(filename).suffix[1:].lower()
    found = next((known for known in _formats if extension in known.extensions), None)
    if extension in _MAY_BE_PAGES and is_html(content):
        return next(known for known in read_formats() if known.media_type == HTML)
    if found and found.media_type == XLS and is_text_table(data):
        # Some programs save HTML or delimited text as .xls.
        return found
    if found and found.extractor and found.recognise:
        raise DocumentRejected(
            f"{filename} is not {found.kind} although its name says so: check the file and upload it again."
        )
    if found and not found.extractor:
        raise _make_rejection(found, filename)
    if not found or found.media_type == PLAIN:
        asked = (known for known in read_formats() if known.recognise_text and known.recognise_text(content))
        found = next(asked, found)
    return found or PLAIN_TEXT


def _make_rejection(known: Format, filename: str) -> DocumentRejected:
    return DocumentRejected(
        f"{filename} is {known.refusal}"
        if known.refusal
        else f"{filename} is {known.kind}; supported are {list_supported_formats()}: convert it to one of these and "
        "upload it again."
    )


# Files with these extensions are left out: assets of web pages, and pictures that the site cannot read.
_OF_PAGES = frozenset(
    """
    .css .scss .less .map .ico .svg .woff .woff2 .ttf .otf .eot .bmp .mng .jng .heic .heif .avif .psd .xcf
    """.split()  # noqa: SIM905
)
_PAGES = frozenset({".html", ".htm", ".xhtml", ".md", ".mdx", ".rst", ".adoc"})
PICTURES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_LOGO = re.compile(r"(?:^|[^a-z])(?:logo|icon|favicon|sprite|avatar|banner)s?(?:[^a-z]|$)", re.I)
_PICTURE_FOLDER = re.compile(r"_?(?:images?|imgs?|figures?|assets|static|pictures|screenshots)(?![a-z])", re.I)


_LITTER = re.compile(
    r"(?:^|/)(?:__MACOSX|\.DS_Store|\._[^/]*|(?:eh)?thumbs\.db|desktop\.ini|~\$[^/]*|~WRL\d+\.tmp|\.~lock\.[^/]*|#[^/]*#"
    r"|[^/]*~|[^/]*\.(?:bak|sw[op]))(?:/|$)",
    re.I,
)


def is_leftover_file(name: str) -> bool:
    return bool(_LITTER.search(name))


def has_page_extension(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in _PAGES


def is_web_page_asset(name: str, *, has_pages: bool) -> bool:
    """Return whether a file only helps to show web pages, such as a style sheet, font or icon.

    If ``has_pages`` is true, all pictures in subfolders such as "images" count as such files too.
    """
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    if suffix in PICTURES:
        is_shown = has_pages and any(map(_PICTURE_FOLDER.match, path.parts[:-1]))
        return is_shown or bool(_LOGO.search(path.stem))
    return suffix in _OF_PAGES
