"""What kind of file the bytes are: by content first, by name second, by what the sender declared last."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import PurePosixPath

from retrieval.exceptions import DocumentRejected

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MARKDOWN = "text/markdown"
HTML = "text/html"
PLAIN = "text/plain"
RST = "text/x-rst"
CSV = "text/csv"
TSV = "text/tab-separated-values"
JSON = "application/json"
JSON_LINES = "application/x-ndjson"

SUPPORTED = "Markdown, HTML, PDF, DOCX, plain text, reStructuredText, CSV, TSV, JSON and source code"

BY_EXTENSION = {
    "pdf": PDF,
    "docx": DOCX,
    "md": MARKDOWN,
    "markdown": MARKDOWN,
    "mdx": MARKDOWN,
    "html": HTML,
    "htm": HTML,
    "xhtml": HTML,
    "txt": PLAIN,
    "text": PLAIN,
    "log": PLAIN,
    "rst": RST,
    "rest": RST,
    "csv": CSV,
    "tsv": TSV,
    "tab": TSV,
    "json": JSON,
    "jsonl": JSON_LINES,
    "ndjson": JSON_LINES,
    "py": "text/x-python",
    "pyi": "text/x-python",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "cjs": "text/javascript",
    "jsx": "text/javascript",
    "ts": "text/x-typescript",
    "tsx": "text/x-typescript",
    "java": "text/x-java",
    "kt": "text/x-kotlin",
    "scala": "text/x-scala",
    "swift": "text/x-swift",
    "cs": "text/x-csharp",
    "c": "text/x-c",
    "h": "text/x-c",
    "cc": "text/x-c++",
    "cpp": "text/x-c++",
    "cxx": "text/x-c++",
    "hpp": "text/x-c++",
    "go": "text/x-go",
    "rs": "text/x-rust",
    "rb": "text/x-ruby",
    "php": "text/x-php",
    "sh": "text/x-shellscript",
    "bash": "text/x-shellscript",
    "zsh": "text/x-shellscript",
    "ps1": "text/x-powershell",
    "sql": "text/x-sql",
    "yaml": "text/x-yaml",
    "yml": "text/x-yaml",
    "toml": "text/x-toml",
    "ini": "text/x-ini",
    "cfg": "text/x-ini",
    "conf": "text/x-ini",
    "properties": "text/x-ini",
    "env": "text/x-ini",
    "xml": "text/xml",
    "xsd": "text/xml",
    "css": "text/css",
    "scss": "text/css",
    "lua": "text/x-lua",
    "r": "text/x-r",
    "pl": "text/x-perl",
    "tf": "text/x-terraform",
    "proto": "text/x-protobuf",
    "graphql": "text/x-graphql",
}
_KNOWN = frozenset(BY_EXTENSION.values())

_UNSUPPORTED_EXTENSIONS = {
    "doc": "an old Word document (.doc)",
    "xls": "an Excel workbook",
    "xlsx": "an Excel workbook",
    "xlsm": "an Excel workbook",
    "ppt": "a PowerPoint presentation",
    "pptx": "a PowerPoint presentation",
    "odt": "an OpenDocument text",
    "ods": "an OpenDocument spreadsheet",
    "epub": "an EPUB book",
    "rtf": "an RTF document",
    "zip": "a ZIP archive",
    "png": "a PNG image",
    "jpg": "a JPEG image",
    "jpeg": "a JPEG image",
    "gif": "a GIF image",
    "webp": "a WebP image",
    "tif": "a TIFF image",
    "tiff": "a TIFF image",
    "msg": "an Outlook message",
}
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"BM\x00", "a bitmap image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90\x00", "a program"),
    (b"\xca\xfe\xba\xbe", "a compiled program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"{\\rtf", "an RTF document"),
    (b"ID3", "an audio file"),
    (b"OggS", "an audio or video file"),
    (b"\x00\x00\x00\x18ftyp", "a video file"),
    (b"\x00\x00\x00\x20ftyp", "a video file"),
    (b"\x1aE\xdf\xa3", "a video file"),
    (b"wOFF", "a font"),
    (b"wOF2", "a font"),
    (b"PAR1", "a Parquet file"),
    (b"%!PS", "a PostScript file"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HTML_TAG = re.compile(rb"<(?:!doctype\s+html|html[\s>])", re.I)
_HTML_LOOKED_AT = 4096
# A Word document holds a few dozen; Word itself refuses far fewer.
_MOST_ENTRIES = 20_000
_ENTRY = b"PK\x01\x02"
_HTML_IN = frozenset({"", PLAIN, HTML})


def detect(data: bytes, filename: str, declared_media_type: str = "") -> str:
    """The media type by which ``data`` is read.

    Raises: DocumentRejected for a format that is not read, and for a name that promises PDF or DOCX over other content.
    """
    extension = PurePosixPath(filename).suffix[1:].lower()
    by_content = _by_signature(data, filename)
    if by_content:
        return by_content
    if extension in {"pdf", "docx"}:
        kind = "a PDF" if extension == "pdf" else "a Word document"
        raise DocumentRejected(
            f"{filename} is not {kind} although its name says so: check the file and upload it again."
        )
    if extension in _UNSUPPORTED_EXTENSIONS:
        raise unsupported(filename, _UNSUPPORTED_EXTENSIONS[extension])
    by_name = BY_EXTENSION.get(extension, "")
    if not by_name:
        declared = declared_media_type.partition(";")[0].strip().lower()
        by_name = declared if declared in _KNOWN - {PDF, DOCX, PLAIN} else ""
    if by_name in _HTML_IN and _begins_as_html(data[:_HTML_LOOKED_AT].removeprefix(b"\xef\xbb\xbf")):
        return HTML
    return by_name or PLAIN


def unsupported(filename: str, kind: str) -> DocumentRejected:
    return DocumentRejected(
        f"{filename} is {kind}; supported are {SUPPORTED}: convert it to one of these and upload it again."
    )


def _begins_as_html(data: bytes) -> bool:
    """Whether an HTML page begins here, after white space, an XML declaration and comments."""
    left = data.lstrip()
    if left.startswith(b"<?xml"):
        left = left.partition(b">")[2].lstrip()
    while left.startswith(b"<!--"):
        left = left[4:].partition(b"-->")[2].lstrip()
    return bool(_HTML_TAG.match(left))


def _by_signature(data: bytes, filename: str) -> str:
    if b"%PDF-" in data[:1024] and data[:64].lstrip()[:1] not in (b"<", b"#", b"{"):
        return PDF
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(data, filename)
    if data.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in data:
            raise DocumentRejected(
                f"{filename} is password-protected: remove the password in Word and upload it again."
            )
        raise unsupported(filename, "an old Office file (.doc, .xls, .ppt or .msg)")
    if data[:4] == b"RIFF":
        raise unsupported(filename, "a WebP image" if data[8:12] == b"WEBP" else "an audio or video file")
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            raise unsupported(filename, kind)
    return ""


def _zip_kind(data: bytes, filename: str) -> str:
    # Counted before the directory is read: each entry costs a hundred times its bytes. None can do without its mark.
    if data.count(_ENTRY) > _MOST_ENTRIES:
        raise DocumentRejected(
            f"{filename} is an archive of more than {_MOST_ENTRIES:,} files: save it again in Word and upload that."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, UnicodeError) as error:
        raise DocumentRejected(
            f"{filename} is a damaged ZIP or Office file: save it again in its program and upload that."
        ) from error
    if "word/document.xml" in names:
        return DOCX
    for prefix, kind in (
        ("xl/", "an Excel workbook"),
        ("ppt/", "a PowerPoint presentation"),
        ("META-INF/container.xml", "an EPUB book"),
    ):
        if any(name.startswith(prefix) for name in names):
            raise unsupported(filename, kind)
    raise unsupported(filename, "an OpenDocument file" if "content.xml" in names else "a ZIP archive")
