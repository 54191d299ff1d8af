"""Small programs that make hostile files; none of the files is kept."""

from __future__ import annotations

import io
import zipfile

# PDF -----------------------------------------------------------------------------------------------------------------


def pdf(objects: dict[int, bytes], trailer: bytes = b"/Root 1 0 R") -> bytes:
    """A PDF file of these objects, with a table of where they stand."""
    out = bytearray(b"%PDF-1.4\n")
    offsets = {}
    for number, body in sorted(objects.items()):
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (max(objects) + 1)
    for number in range(1, max(objects) + 1):
        out += b"%010d 00000 n \n" % offsets[number] if number in offsets else b"0000000000 65535 f \n"
    out += b"trailer\n<< /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (max(objects) + 1, trailer, table)
    return bytes(out)


def stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), entries, content)


def page(content: bytes, *, box: bytes = b"0 0 612 792", resources: bytes = b"", **more: bytes) -> dict[int, bytes]:
    """The objects of a file of one page, numbered up to 5."""
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> %s >> >>"
        % (box, resources),
        4: stream(content),
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }


WORDS = b"BT /F1 11 Tf 60 700 Td (The pump hums.) Tj ET\n"


def pdf_nested_forms(levels: int = 12, fan_out: int = 10) -> bytes:
    """Form objects that draw the next one ten times each: ten to the twelfth words in 3 kB."""
    objects = page(WORDS + b"/X0 Do", resources=b"/XObject << /X0 10 0 R >>")
    for level in range(levels):
        last = level == levels - 1
        inner = WORDS if last else b"/X Do " * fan_out
        resources = b"/Font << /F1 5 0 R >>" if last else b"/XObject << /X %d 0 R >>" % (11 + level)
        objects[10 + level] = stream(
            inner, b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << %s >>" % resources
        )
    return pdf(objects)


# Word ----------------------------------------------------------------------------------------------------------------

_TYPES = (
    b'<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    b'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    b'<Override PartName="/word/document.xml" ContentType='
    b'"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
    b'<Override PartName="/word/numbering.xml" ContentType='
    b'"application/vnd.openxmlformats-officedocument.wordprocessingml.numbering+xml"/>'
    b'<Override PartName="/word/styles.xml" ContentType='
    b'"application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>'
)
_RELATIONS = (
    b'<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    b'<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s"'
    b' Target="%s"/></Relationships>'
)
_W = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(body: bytes, *, numbering: bytes = b"", more: dict[str, bytes] | None = None, prolog: bytes = b"") -> bytes:
    """A Word file with this body."""
    entries = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _RELATIONS % (b"officeDocument", b"word/document.xml"),
        "word/document.xml": b'<?xml version="1.0"?>%s<w:document %s><w:body>%s</w:body></w:document>'
        % (prolog, _W, body),
        "word/styles.xml": b'<?xml version="1.0"?><w:styles %s></w:styles>' % _W,
    }
    if numbering:
        entries["word/numbering.xml"] = b'<?xml version="1.0"?><w:numbering %s>%s</w:numbering>' % (_W, numbering)
        entries["word/_rels/document.xml.rels"] = _RELATIONS % (b"numbering", b"numbering.xml")
    return zipped(entries | (more or {}))


def zipped(entries: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


def paragraph(words: bytes = b"The pump hums.", properties: bytes = b"") -> bytes:
    return b"<w:p><w:pPr>%s</w:pPr><w:r><w:t>%s</w:t></w:r></w:p>" % (properties, words)


def docx_empty_paragraphs(count: int = 300_000) -> bytes:
    return docx(paragraph() + b"<w:p/>" * count)
