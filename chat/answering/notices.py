from __future__ import annotations

from django.utils.translation import gettext as _

from chat.types import (
    AnswerDraft,
    VerificationResult,
)


def find_doubts_of_answer(verified: VerificationResult, draft: AnswerDraft) -> list[str]:
    """Return warnings about a model's answer; empty if it is complete and its sources support it."""
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


def describe_fallback(draft: AnswerDraft) -> str:
    if draft.filtered:
        return _(
            "The language model's content filter stopped its answer. This answer is quoted from the documents instead."
        )
    if draft.withheld:
        return _(
            "The language model's answer contained text that it must not repeat, and was withheld. This answer is "
            "quoted from the documents instead."
        )
    return _("The language model did not answer. This answer is quoted from the documents instead.")
