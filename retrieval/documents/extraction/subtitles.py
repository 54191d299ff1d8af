"""Convert subtitles (SRT and WebVTT) to paragraphs that begin with a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,]\d{1,3}"
_CUE = re.compile(rf"^[ \t]*{_TIME}[ \t]*-->[ \t]*(?:\d{{1,3}}:)?\d{{1,2}}:\d{{1,2}}[.,]\d{{1,3}}[^\n]*$", re.M)
_VOICE = re.compile(r"<v(?:\.[\w.]+)?\s+([^<>]{1,80})>")
_MARKUP = re.compile(r"</?[a-zA-Z0-9][^<>]{0,80}>|\{\\[^{}]{0,80}\}")
_NOT_SAID = re.compile(r"\s*(?:NOTE|STYLE|REGION)(?=\s|$)")
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
    shown: list[tuple[str, str]] = []
    shown_until = ""
    for at, cue in enumerate(cues):
        end = cues[at + 1].start() if at + 1 < len(cues) else len(source)
        body = source[cue.end() : end]
        blocks = body.split("\n\n")
        # The line before the next timestamp is the number or name of the next subtitle.
        if end < len(source) and not body.endswith("\n\n"):
            blocks.pop()
        # The first block is the subtitle itself. A later block can be a comment or a style sheet.
        said = "\n".join(block for order, block in enumerate(blocks) if not order or not _NOT_SAID.match(block))
        lines = list(_read_lines(said))
        # Automatic subtitles move up: a subtitle shows the last lines of the one before again.
        is_next = cue[0].split()[0] == shown_until
        known = next((size for size in (2, 1) if is_next and shown[-size:] == lines[:size]), 0)
        shown, shown_until = lines, cue[0].partition("-->")[2].split()[0]
        for order, (now, words) in enumerate(lines[known:]):
            is_full = not order and paragraph.endswith(_SENTENCE_END) and len(paragraph) > _LONGEST_PARAGRAPH
            if paragraph and (now != speaker or is_full):
                writer.add_paragraph(f"[{begun}] {f'{speaker}: ' if speaker else ''}{paragraph}")
                paragraph = ""
            if not paragraph:
                hours, minutes, seconds = cue.groups()
                begun, speaker = f"{int(hours or 0)}:{minutes:0>2}:{seconds:0>2}", now
            paragraph = f"{paragraph} {words}".strip()
    writer.add_paragraph(f"[{begun}] {f'{speaker}: ' if speaker else ''}{paragraph}")
    return writer.build_extracted_text()


def _read_lines(said: str) -> Iterator[tuple[str, str]]:
    """Yield each line of a subtitle, with its speaker."""
    before, *voices = _VOICE.split(said)
    for speaker, part in [("", before), *zip(voices[::2], voices[1::2], strict=True)]:
        for line in part.split("\n"):
            if words := " ".join(make_canonical_text(unescape(_MARKUP.sub("", line))).split()):
                yield speaker.strip(), words
