"""A format that is defined in this module alone: an extractor and one registration."""

from __future__ import annotations

from retrieval.documents.extraction import ExtractedText, ExtractionLimits, Section
from retrieval.documents.formats import Format, ViewerLayout, register_formats

MARK = b"TOY1"


def extract_toy(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    text = data.removeprefix(MARK).decode("ascii").swapcase()
    return ExtractedText(
        text=f"# {filename}\n\n{text}\n", media_type=media_type, title="Toy", sections=(Section(0, 1, filename),)
    )


register_formats(
    Format(
        kind="a toy",
        extensions=("toy",),
        media_type="application/x-toy",
        label="TOY",
        extractor=f"{__name__}:extract_toy",
        view=ViewerLayout.CONVERTED,
        recognise=lambda content: content.data.startswith(MARK),
    )
)
