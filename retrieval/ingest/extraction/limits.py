"""How large a file may be."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval.exceptions import DocumentRejected


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Upper bounds on one file; what passes one of them is rejected, never cut short."""

    max_bytes: int = 50_000_000
    max_text_chars: int = 20_000_000
    max_pages: int = 5_000
    max_uncompressed_bytes: int = 500_000_000
    max_compression_ratio: int = 200


def too_much_text(filename: str, limits: ExtractionLimits) -> DocumentRejected:
    return DocumentRejected(
        f"{filename} holds more than {limits.max_text_chars:,} characters of text: "
        "split it into smaller files and upload those."
    )
