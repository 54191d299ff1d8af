"""How the context of an answer came about, in words."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.debugging.labels import grouped


def context_in_words(counted: Mapping[str, int]) -> tuple[str, ...]:
    """What came in, was dropped, added and stripped, and what that makes; empty when nothing was put together.

    ``counted`` are the statistics of :func:`retrieval.search.assembly.assemble`. What did not happen is not told.
    """
    if not counted:
        return ()

    def number(name: str) -> int:
        return int(counted.get(name, 0))

    said = [ngettext("%(number)s hit", "%(number)s hits", number("hits")) % {"number": grouped(number("hits"))}]
    for name, told in (
        (
            "repeats_dropped",
            ngettext("%(number)s repeat dropped", "%(number)s repeats dropped", number("repeats_dropped")),
        ),
        (
            "over_budget_dropped",
            ngettext(
                "%(number)s left out for lack of room",
                "%(number)s left out for lack of room",
                number("over_budget_dropped"),
            ),
        ),
        (
            "neighbours_added",
            ngettext("%(number)s neighbour added", "%(number)s neighbours added", number("neighbours_added")),
        ),
        (
            "overlap_characters_stripped",
            ngettext(
                "%(number)s character of overlap stripped",
                "%(number)s characters of overlap stripped",
                number("overlap_characters_stripped"),
            ),
        ),
    ):
        if number(name):
            said.append(told % {"number": grouped(number(name))})
    blocks = ngettext("%(number)s block", "%(number)s blocks", number("blocks")) % {"number": grouped(number("blocks"))}
    documents = ngettext("%(number)s document", "%(number)s documents", number("documents")) % {
        "number": grouped(number("documents"))
    }
    said.append(_("%(blocks)s from %(documents)s") % {"blocks": blocks, "documents": documents})
    said.append(
        _("%(tokens)s of %(budget)s tokens")
        % {"tokens": grouped(number("tokens")), "budget": grouped(number("budget_tokens"))}
    )
    return tuple(said)
