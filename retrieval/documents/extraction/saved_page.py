"""Extract saved web pages. Their format (MHT, MHTML) is like a mail with attachments."""

from __future__ import annotations

import email
import email.policy
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import cast

from retrieval.documents.extraction.decoding import decode
from retrieval.documents.extraction.html import read_page
from retrieval.documents.extraction.markdown import build_markdown_text
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits, strip_title


def extract_saved_page(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    """Return the text of the page and its frames."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    parts = [part for part in message.walk() if part.get_content_type() in ("text/html", "application/xhtml+xml")]
    start = str(message.get_param("start") or "").strip("<>")
    parts.sort(key=lambda part: bool(start) and str(part.get("Content-ID") or "").strip("<> ") != start)
    pages: list[ExtractedText] = []
    for part in parts:
        # `read_page` rejects a frame that has only links. After a readable page, such a frame is skipped.
        with suppress(DocumentRejected) if pages else nullcontext():
            content = cast(bytes, part.get_payload(decode=True) or b"")
            source = decode(content, filename, html=True, label=part.get_content_charset() or "")
            pages.append(read_page(source, filename))
    if not pages:
        raise DocumentRejected(f"{filename} holds no page: save it again in your browser and upload that.")
    title = pages[0].title or strip_title(str(message.get("Subject") or ""))
    text = "\n\n".join(page.text.strip("\n") for page in pages) + "\n"
    return replace(build_markdown_text(text, title), left_out=[each for page in pages for each in page.left_out])
