"""How the context of an answer came about, in words."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.debugging.labels import fill_in_number, group_digits


def context_in_words(counted: Mapping[str, int]) -> tuple[str, ...]:
    """What came in, was dropped, added and stripped, and what that makes; empty when nothing was put together.

    ``counted`` are the statistics of :func:`retrieval.search.assembly.assemble`. What did not happen is not told.
    """
    if not counted:
        return ()
    hits, repeats, left_out, added, stripped, blocks, documents, tokens, budget = (
        counted.get(name, 0)
        for name in (
            *("hits", "repeats_dropped", "over_budget_dropped", "neighbours_added", "overlap_characters_stripped"),
            *("blocks", "documents", "tokens", "budget_tokens"),
        )
    )
    happened = (
        (ngettext("%(number)s repeat dropped", "%(number)s repeats dropped", repeats), repeats),
        (ngettext("%(number)s left out for lack of room", "%(number)s left out for lack of room", left_out), left_out),
        (ngettext("%(number)s neighbour added", "%(number)s neighbours added", added), added),
        (
            ngettext("%(number)s character of overlap stripped", "%(number)s characters of overlap stripped", stripped),
            stripped,
        ),
    )
    return (
        fill_in_number(ngettext("%(number)s hit", "%(number)s hits", hits), hits),
        *(fill_in_number(text, number) for text, number in happened if number),
        _("%(blocks)s from %(documents)s")
        % {
            "blocks": fill_in_number(ngettext("%(number)s block", "%(number)s blocks", blocks), blocks),
            "documents": fill_in_number(ngettext("%(number)s document", "%(number)s documents", documents), documents),
        },
        _("%(tokens)s of %(budget)s tokens") % {"tokens": group_digits(tokens), "budget": group_digits(budget)},
    )
