"""Describe to users which parts of a file were not read."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext, ngettext_lazy

LeftOutRow = tuple[str, list[str], int]

KINDS = {
    "words": ngettext_lazy("%d word", "%d words"),
    "hidden": ngettext_lazy("%d hidden word", "%d hidden words"),
    "struck": ngettext_lazy("%d struck-out word", "%d struck-out words"),
    "outside": ngettext_lazy("%d word beside the main part of the page", "%d words beside the main part of the page"),
    "other_form": ngettext_lazy("%d word of a second form of the mail", "%d words of a second form of the mail"),
    "notes": ngettext_lazy("%d word of the notes", "%d words of the notes"),
    "footnotes": ngettext_lazy("%d word of footnotes", "%d words of footnotes"),
    "margins": ngettext_lazy("%d word of headers and footers", "%d words of headers and footers"),
    "comments": ngettext_lazy("%d comment", "%d comments"),
    "charts": ngettext_lazy("%d chart", "%d charts"),
    "diagrams": ngettext_lazy("%d diagram", "%d diagrams"),
    "form": ngettext_lazy("%d form that only Adobe Acrobat shows", "%d forms that only Adobe Acrobat shows"),
    "layers": ngettext_lazy("%d layer that is switched off", "%d layers that are switched off"),
    "embedded": ngettext_lazy("%d object of another program", "%d objects of other programs"),
    "pictures": ngettext_lazy("%d picture", "%d pictures"),
    "formulas": ngettext_lazy("%d formula without a stored value", "%d formulas without a stored value"),
    "sheets": ngettext_lazy("%d hidden sheet", "%d hidden sheets"),
    "hidden_cells": ngettext_lazy("%d hidden row or column", "%d hidden rows and columns"),
    "number_formats": ngettext_lazy("the format of %d number", "the formats of %d numbers"),
    "slides": ngettext_lazy("%d hidden slide", "%d hidden slides"),
    "of_pages": ngettext_lazy("%d file that serves how pages look", "%d files that serve how pages look"),
    "unreadable": ngettext_lazy("%d unreadable file", "%d unreadable files"),
    "pointers": ngettext_lazy("%d Git LFS pointer in place of a file", "%d Git LFS pointers in place of files"),
    "locked": ngettext_lazy("%d file with a password", "%d files with a password"),
    "large": ngettext_lazy("%d file that is too large", "%d files that are too large"),
    "linked": ngettext_lazy("%d linked file", "%d linked files"),
    "encrypted": ngettext_lazy("%d encrypted part", "%d encrypted parts"),
    "encoded": ngettext_lazy("%d passage of encoded data", "%d passages of encoded data"),
    "partial": ngettext_lazy("%d piece of a longer message", "%d pieces of longer messages"),
    "outlook": ngettext_lazy("%d package of Outlook", "%d packages of Outlook"),
}
_ADVICE = {
    "formulas": gettext_noop("Open the file in its program, save it and upload it: then the values are in it."),
    "form": gettext_noop("Print the form to PDF there, and upload that."),
    "hidden_cells": gettext_noop("Show them in their program, save the file and upload it."),
    "number_formats": gettext_noop("Save the file as .xlsx and upload it: then zeros before a number are read."),
    "locked": gettext_noop("Remove the password and upload it again."),
    "outlook": gettext_noop("Ask the sender to send it as HTML or as plain text."),
}


def summarise_left_out_parts(left_out: Iterable[LeftOutRow]) -> str:
    return ", ".join(str(KINDS[kind] % count) for kind, _names, count in left_out)


def explain_left_out_parts(left_out: Iterable[LeftOutRow]) -> str:
    """Return a sentence on content that was not read, and what to do; empty if all was read."""
    parts, advice = [], []
    for kind, names, count in left_out:
        part = str(KINDS[kind] % count)
        if names:
            more = count - len(names)
            named = ", ".join(names) + (ngettext(" and %d more", " and %d more", more) % more if more > 0 else "")
            part = f"{part} ({named})"
        parts.append(part)
        if kind in _ADVICE:
            advice.append(_(_ADVICE[kind]))
    return " ".join([_("Not read: %s.") % ", ".join(parts), *advice]) if parts else ""
