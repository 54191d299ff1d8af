"""Choose icons for file formats. The names are those of the symbols in chat/icons.svg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from retrieval.documents.formats import ViewerLayout, get_viewer_layout, read_formats
from retrieval.media_types import EML, HTML, MBOX, MHTML, MSG

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

_ICONS = {
    ViewerLayout.PRINTED: "printed",
    ViewerLayout.TABLES: "sheet",
    ViewerLayout.RECORDS: "sheet",
    ViewerLayout.SLIDES: "slides",
    ViewerLayout.CODE: "code",
}
_KINDS = {
    "page": _("Word and text"),
    "printed": _("PDF and pictures"),
    "sheet": _("Tables"),
    "slides": _("Slides"),
    "web": _("Web pages"),
    "mail": _("Mail"),
    "code": _("Source code"),
}


@dataclass(frozen=True)
class FileKind:
    """A group of file formats with the same icon. ``labels`` are the formats' names."""

    icon: str
    name: str | StrPromise
    labels: str


def choose_icon(media_type: str) -> str:
    """Return the name of the icon for a document; "page" for an unknown format."""
    if media_type in (EML, MSG, MBOX):
        return "mail"
    return "web" if media_type in (HTML, MHTML) else _ICONS.get(get_viewer_layout(media_type), "page")


def list_icons_by_extension() -> dict[str, str]:
    return {extension: choose_icon(known.media_type) for known in read_formats() for extension in known.extensions}


def list_file_kinds() -> list[FileKind]:
    labels: dict[str, dict[str, None]] = {icon: {} for icon in _KINDS}
    for known in read_formats():
        labels[choose_icon(known.media_type)][known.label] = None
    return [FileKind(icon, name, ", ".join(labels[icon])) for icon, name in _KINDS.items()]
