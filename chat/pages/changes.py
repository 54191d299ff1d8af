"""Compare the words that an answer cites with today's documents."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.answering.quoted_words import SimilarText, find_quotes_in_current_texts, find_similar_texts
from chat.models import Citation
from chat.pages.plain_text import convert_to_plain_text
from retrieval.passage_address import build_passage_url

_COMPARED_CHARACTERS = 4000
_WORD = re.compile(r"\S+\s*")

Parts = list[tuple[bool, str]]


class ChangeKind(models.TextChoices):
    CHANGED = "changed", _("This passage has changed since.")
    MISSING = "missing", _("This passage is no longer in the document.")
    REMOVED = "removed", _("This document has been removed.")


@dataclass(frozen=True, slots=True)
class PassageChange:
    """A cited passage whose words are no longer in its document.

    ``now`` is the most similar passage in today's text, or empty. ``href`` opens it, or else the document.
    """

    anchor: str
    marker: int
    title: str
    kind: ChangeKind
    then: str
    now: str = ""
    href: str = ""

    @property
    def key(self) -> str:
        """A hash of the change, to recognise changes that were mailed."""
        return hashlib.sha256("\0".join([self.title, self.kind, self.then, self.now]).encode()).hexdigest()[:32]

    @property
    def cited_text_parts(self) -> Parts:
        """The cited words in parts, each with a flag that is true if the part differs from today's words."""
        return _mark_differences(self.then, self.now)

    @property
    def current_text_parts(self) -> Parts:
        return _mark_differences(self.now, self.then)


def _mark_differences(text: str, other: str) -> Parts:
    if not other:
        return [(False, text)]
    words, others = _WORD.findall(text), _WORD.findall(other)
    matcher = SequenceMatcher(None, [w.rstrip() for w in words], [w.rstrip() for w in others], autojunk=False)
    parts, position = [], 0
    for start, _other, length in matcher.get_matching_blocks():
        different = "".join(words[position:start])
        parts.append((True, different.rstrip()))
        parts.append((False, different[len(different.rstrip()) :] + "".join(words[start : start + length])))
        position = start + length
    return [(is_different, part) for is_different, part in parts if part]


def find_changes(citations: Iterable[Citation]) -> dict[int, PassageChange]:
    """Return the changed passages among the citations, by citation id. This takes at most two queries.

    Pass only citations that the reader may read, because the result contains text of documents.
    """
    listed = list(citations)
    changed: list[Citation] = []
    changes: dict[int, PassageChange] = {}
    for citation, found in zip(listed, find_quotes_in_current_texts(listed), strict=True):
        if citation.document_id is None:
            changes[citation.pk] = _build_passage_change(citation, ChangeKind.REMOVED)
        elif found.version and not found.has_same_words:
            changed.append(citation)
    for citation, near in zip(changed, find_similar_texts(changed), strict=True):
        change = _build_passage_change(citation, ChangeKind.CHANGED if near else ChangeKind.MISSING, near)
        # If the texts without markup are equal, only the markup has changed, which is not shown.
        if change.then != change.now:
            changes[citation.pk] = change
    shown: dict[tuple[object, str], PassageChange] = {}
    for citation in listed:
        if (found_change := changes.get(citation.pk)) is not None:
            changes[citation.pk] = shown.setdefault((citation.answer_id, found_change.key), found_change)
    return changes


def _build_passage_change(citation: Citation, kind: ChangeKind, near: SimilarText | None = None) -> PassageChange:
    place = near or SimilarText("", 0)
    return PassageChange(
        anchor=f"change-{citation.pk}",
        marker=citation.marker,
        title=citation.document_title,
        kind=kind,
        then=convert_to_plain_text(citation.quote)[:_COMPARED_CHARACTERS],
        now=convert_to_plain_text(place.text)[:_COMPARED_CHARACTERS],
        href=build_passage_url(citation.document_id, place.start, place.end),
    )


def list_distinct_changes(
    changes: Mapping[int, PassageChange], citations: Iterable[Citation]
) -> tuple[PassageChange, ...]:
    """Return the changed passages that the citations quote, each once, ordered by marker."""
    found = dict.fromkeys(changes[citation.pk] for citation in citations if citation.pk in changes)
    return tuple(sorted(found, key=lambda change: change.marker))
