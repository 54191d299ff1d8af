"""Convert subtitles (SRT and WebVTT) to paragraphs that begin with a time."""

from __future__ import annotations

import re

from retrieval.documents.extraction.decoding import decode
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,]\d{1,3}"
_CUE = re.compile(rf"^[ \t]*{_TIME}[ \t]*-->[ \t]*(?:\d{{1,3}}:)?\d{{1,2}}:\d{{1,2}}[.,]\d{{1,3}}[^\n]*$", re.M)
_VOICE = re.compile(r"<v(?:\.[\w.]+)?\s+([^<>]{1,80})>")
_MARKUP = re.compile(r"</?[a-zA-Z0-9][^<>]{0,80}>|\{\\[^{}]{0,80}\}")
_NOT_SAID = ("NOTE", "STYLE", "REGION")
_SENTENCE_END = (".", "!", "?", "…", '"', "”")
_LONGEST_PARAGRAPH = 400


def extract_subtitles(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    """Return the subtitles' text. A paragraph ends with a sentence, or when the speaker changes."""
    source = f"{decode(data, filename)}\n"
    cues = list(_CUE.finditer(source))
    if not cues:
        raise DocumentRejected(f"{filename} holds no subtitles with their times: check the file and upload it again.")
    writer = MarkdownWriter(filename, limits)
    paragraph, begun, speaker = "", "", ""
    for at, cue in enumerate(cues):
        end = cues[at + 1].start() if at + 1 < len(cues) else len(source)
        body = source[cue.end() : end]
        blocks = body.split("\n\n")
        # The line before the next timestamp is the number or name of the next subtitle.
        if end < len(source) and not body.endswith("\n\n"):
            blocks.pop()
        said = "\n".join(block for block in blocks if not block.lstrip().startswith(_NOT_SAID))
        voice = _VOICE.search(said)
        words = " ".join(_MARKUP.sub("", said).split())
        now = voice[1].strip() if voice else ""
        if not words:
            continue
        if paragraph and (
            now != speaker or (paragraph.endswith(_SENTENCE_END) and len(paragraph) > _LONGEST_PARAGRAPH)
        ):
            writer.add_paragraph(f"[{begun}] {f'{speaker}: ' if speaker else ''}{paragraph}")
            paragraph = ""
        if not paragraph:
            hours, minutes, seconds = cue.groups()
            begun, speaker = f"{int(hours or 0)}:{minutes:0>2}:{seconds:0>2}", now
        paragraph = f"{paragraph} {words}".strip()
    writer.add_paragraph(f"[{begun}] {f'{speaker}: ' if speaker else ''}{paragraph}")
    return writer.build_extracted_text()
