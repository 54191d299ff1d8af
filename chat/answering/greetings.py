from __future__ import annotations

import re

from django.utils.translation import gettext as _

from chat.types import (
    CompletedEvent,
)
from retrieval.models import Collection
from retrieval.text.word_lists import fill_in
from retrieval.types import SearchFilters

_COURTESY = re.compile(fill_in(r"\W*(?:<courtesies>\b\W*){1,5}", "questions"), re.IGNORECASE)


MOST_NAMES = 4


def answer_greeting(message: str, filters: SearchFilters) -> CompletedEvent | None:
    """Return the answer to a greeting or thanks; None for other messages."""
    if not _COURTESY.fullmatch(message):
        return None
    names = Collection.objects.filter(pk__in=filters.collections).order_by("name").values_list("name", flat=True)
    shown = ", ".join(names[:MOST_NAMES])
    text = _("Hello! Ask a question: this site answers from its documents, and names the place.")
    if shown:
        text += " " + _("There are documents in: %(collections)s.") % {"collections": shown}
    return CompletedEvent(text, (), generator="")
