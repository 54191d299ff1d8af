"""Removing the documents of what is gone from a source, unless they are so many that somebody has to look first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import F

from retrieval.drafts.editing import changing
from retrieval.models import SourceItem, SourceRun
from retrieval.sources.runs.log import Tally

# Of the documents of a source. A larger share is removed only when somebody has agreed.
LARGEST_SHARE = 0.2


def remove_gone(
    run: SourceRun, tally: Tally, gone: Sequence[SourceItem], documents: Collection[str], total: int
) -> None:
    """``documents`` are the names of those that there are, ``total`` how many items had one before the run."""
    consented = {item.pk for item in gone if run.may_remove and item.is_held}
    in_question = [item for item in gone if item.name in documents and item.pk not in consented]
    if _is_too_much(len(in_question), total - len(consented)):
        held = {item.pk for item in in_question}
        tally.hold(map(_name_of, in_question))
        if not run.is_preview:
            SourceItem.objects.filter(pk__in=held).update(is_held=True)
        gone = [item for item in gone if item.pk not in held]
    for item in gone:
        if item.name in documents:
            tally.remove(_name_of(item))
        if not run.is_preview:
            _remove(run, tally, item)


def _remove(run: SourceRun, tally: Tally, item: SourceItem) -> None:
    with changing(run.source.collection_id):
        run.lock()
        for document in run.source.own_documents.filter(source=item.name):
            document.delete()
            run.write(removed=F("removed") + 1, details=tally.details())
        item.delete()


def _name_of(item: SourceItem) -> str:
    return item.name or item.key


def _is_too_much(gone: int, total: int) -> bool:
    """Whether so many of all documents are not removed before somebody has looked: more than LARGEST_SHARE, but
    for a single one; and never all."""
    return gone > 0 and (gone == total or (gone > 1 and gone > LARGEST_SHARE * total))
