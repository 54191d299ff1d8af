"""Help at /help/: the handbook, and the settings of the installed version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_GET

from ragsite.processes.first_run import SEARCHED_BY_NAME
from retrieval.documents.extraction.html import convert_html, parse_html
from retrieval.documents.extraction.markdown import parse_structure
from retrieval.models import Collection
from retrieval.viewer.markdown_page import render_document
from retrieval.viewer.plain_text import Heading

_MOST_FOUND = 30
_EXCERPT_CHARACTERS = 180
_SIGNS = re.compile(r"[*`|#]+|^```.*$|\|?(?:-{3,}\|?)+", re.MULTILINE)
_DEEP_HEADING = re.compile(r"(</?h)([3-6])\b")
_SETTINGS_HEADING = re.compile(r"^# --- (.+) ---$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chapter:
    slug: str
    title: str
    sections: tuple[tuple[Heading, str], ...]
    html: SafeString


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """List the chapters and, for the words in ``?q=``, the sections that contain all of them."""
    words = request.GET.get("q", "").casefold().split()
    found = [
        (-sum(word in heading.title.casefold() for word in words), chapter, heading, " ".join(text.split()))
        for chapter in read_chapters().values()
        for heading, text in chapter.sections
        if words and all(word in f"{heading.title} {text}".casefold() for word in words)
    ]
    found.sort(key=lambda one: one[0])
    context = {
        "chapters": read_chapters().values(),
        "found": [
            (chapter, heading, _make_excerpt_with_words(text, words))
            for _rank, chapter, heading, text in found[:_MOST_FOUND]
        ],
        "wanted": request.GET.get("q", ""),
        "handbook": Collection.objects.readable_by(request.user).filter(slug=SEARCHED_BY_NAME).first(),
    }
    return render(request, "help/index.html", context)


@require_GET
def chapter(request: HttpRequest, slug: str) -> HttpResponse:
    shown = read_chapters().get(slug)
    if shown is None:
        raise Http404
    outline = [heading for heading, _text in shown.sections[1:]]
    return render(
        request, "help/chapter.html", {"chapter": shown, "outline": outline, "chapters": read_chapters().values()}
    )


@cache
def read_chapters() -> dict[str, Chapter]:
    found = {}
    with translation.override("en"):
        for path in sorted((settings.BASE_DIR / "demo" / "handbook").glob("[0-9]*")):
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".html" and (root := parse_html(text, path.name)) is not None:
                text = convert_html(root)
            slug = path.stem.partition("-")[2]
            found[slug] = _make_chapter(slug, text)
        found["settings"] = _make_chapter("settings", _read_settings_text())
    return found


def _make_chapter(slug: str, text: str) -> Chapter:
    sections, _blocks = parse_structure(text)
    ends = [*(section.start for section in sections[1:]), len(text)]
    below = [
        _SIGNS.sub(" ", text[section.start : end].partition("\n")[2])
        for section, end in zip(sections, ends, strict=True)
    ]
    headings = [Heading(section.start, section.level, section.title) for section in sections]
    title_end = text.index("\n", headings[0].start)
    html = "".join(render_document(" " * title_end + text[title_end:]))
    html = _DEEP_HEADING.sub(lambda tag: f"{tag[1]}{int(tag[2]) - 1}", html)
    return Chapter(slug, headings[0].title, tuple(zip(headings, below, strict=True)), mark_safe(html))  # noqa: S308


def _read_settings_text() -> str:
    parts = _SETTINGS_HEADING.split((settings.BASE_DIR / ".env.example").read_text(encoding="utf-8"))
    above = parts[0].strip().lstrip("# ")
    blocks = [f"## {title}\n\n```\n{lines.strip()}\n```" for title, lines in zip(parts[1::2], parts[2::2], strict=True)]
    return "\n\n".join(["# Settings", above, *blocks]) + "\n"


def _make_excerpt_with_words(text: str, words: list[str]) -> str:
    at = min((place for word in words if (place := text.casefold().find(word)) >= 0), default=0)
    start = max(0, at - _EXCERPT_CHARACTERS // 3)
    cut = text[start : start + _EXCERPT_CHARACTERS]
    return f"{'… ' if start else ''}{cut}{' …' if start + _EXCERPT_CHARACTERS < len(text) else ''}"
