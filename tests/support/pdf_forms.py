"""Forms as PDF files, written byte by byte."""

from tests.support import bombs

LABELS = (
    b"BT /F1 11 Tf 60 700 Td (Surname:) Tj 0 -30 Td (Certificate) Tj 0 -30 Td (Shift:) Tj 0 -30 Td (The end.) Tj ET"
)
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def form(*annotations, catalog=b"", content=LABELS, resources=b"", **objects):
    """Return a page of the content with annotations, which are objects from 10 on."""
    first = 10
    numbers = b" ".join(b"%d 0 R" % (first + at) for at in range(len(annotations)))
    return bombs.pdf(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [%s] /DA (/F1 0 Tf) >> %s >>" % (numbers, catalog),
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Annots [%s]" % numbers
            + b" /Resources << /Font << /F1 5 0 R >> %s >> >>" % resources,
            4: bombs.stream(content),
            5: FONT,
            **{first + at: b"<< /Type /Annot %s >>" % body for at, body in enumerate(annotations)},
            **{int(name[1:]): body for name, body in objects.items()},
        }
    )


def field(kind, value, rect, more=b""):
    return b"/Subtype /Widget /F 4 /FT /%s /T (f%d) /Rect [%d %d %d %d] %s %s" % (kind, sum(rect), *rect, value, more)
