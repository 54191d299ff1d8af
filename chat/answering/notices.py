"""What a reader must know of how an answer came about: the notices beside it."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from chat.protocols import PartialAnswer
from chat.types import Verified
from retrieval.models import Collection


def doubts_of(verified: Verified, draft: PartialAnswer) -> list[str]:
    """What a reader of a model's answer must know of it; empty for one that is whole and names its sources.

    Most sentences count as unsupported when more than half of those that could be measured are.
    """
    doubts = []
    if draft.looped:
        doubts.append(_("The language model repeated itself and was stopped."))
    if draft.cut_off:
        doubts.append(_("This answer was cut off: it reached the largest length or time."))
    measured = [statement.supported for statement in verified.statements if statement.supported is not None]
    if not verified.citations:
        doubts.append(_("No sentence of this answer was found in the documents."))
    elif measured.count(False) * 2 > len(measured):
        doubts.append(_("Most sentences of this answer are not supported by the sources they name."))
    return doubts


def by_words_notice() -> str:
    return _("The embedding model did not answer: what the passages say was judged by their words alone.")


def named_collections_notice(slugs: Sequence[str]) -> str:
    names = Collection.objects.filter(slug__in=slugs).order_by("name").values_list("name", flat=True)
    return _("The question names %(collections)s: passages from there come first.") % {"collections": ", ".join(names)}


def gave_up_notice() -> str:
    return _("The language model found no answer in these passages. This one comes nearest to the question.")


def fallback_notice(draft: PartialAnswer) -> str:
    if draft.filtered:
        return _(
            "The language model's content filter stopped its answer. This answer is quoted from the documents instead."
        )
    if draft.withheld:
        return _(
            "The language model's answer held text that it must not repeat, and was withheld. This answer is quoted "
            "from the documents instead."
        )
    return _("The language model did not answer. This answer is quoted from the documents instead.")
