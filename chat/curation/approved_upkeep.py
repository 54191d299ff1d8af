from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import Q
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.answering.quoted_words import find_quotes_in_current_texts
from chat.curation.approval import embed_wordings
from chat.models import ApprovedAnswer, ApprovedQuestion, ApprovedSource, Feedback
from core.job_queue import sweeping
from retrieval.models import Chunk
from retrieval.text.questions import normalize_question

logger = logging.getLogger(__name__)


def find_curated_questions(questions: Iterable[str]) -> frozenset[str]:
    """Return the questions, normalized, that curators have settled: with an approved answer or an assigned passage."""
    asked = {normalize_question(question) for question in questions}
    given = ApprovedQuestion.objects.filter(
        approved__in=ApprovedAnswer.objects.filter(ApprovedAnswer.build_in_force_condition())
    )
    found = set(given.filter(normalized__in=asked).values_list("normalized", flat=True))
    edited = Chunk.objects.filter(questions_edited=True).exclude(canonical_questions=[]).order_by()
    for wordings in edited.values_list("canonical_questions", flat=True):
        found |= asked.intersection(map(normalize_question, wordings))
    return frozenset(found)


@receiver(post_save, sender=Feedback, dispatch_uid="chat.flag_unhelpful")
def _flag_unhelpful_answer(instance: Feedback, **_options: Any) -> None:
    if not instance.helpful and instance.answer.approved is not None:
        instance.answer.approved.flag_for_review(ApprovedAnswer.Flag.UNHELPFUL)


@receiver(sweeping, dispatch_uid="chat.look_after_approved")
def _maintain_approved_answers(**_options: Any) -> None:
    flag_outdated_answers()
    mail_flagged_answer_owners()
    embed_wordings(ApprovedQuestion.objects.filter(approved__state=ApprovedAnswer.State.APPROVED))


def flag_outdated_answers() -> None:
    """Flag approved answers that have expired, or whose cited words are no longer in their document."""
    approved = ApprovedAnswer.objects.filter(state=ApprovedAnswer.State.APPROVED).exclude(
        flag__in=ApprovedAnswer.WITHHELD_FLAGS
    )
    for expired in approved.filter(expires_on__lt=timezone.localdate()):
        expired.flag_for_review(ApprovedAnswer.Flag.EXPIRED)
    sources = list(ApprovedSource.objects.filter(approved__in=approved).select_related("approved"))
    for source, found in zip(sources, find_quotes_in_current_texts(sources), strict=True):
        if not found.is_found:
            flag = ApprovedAnswer.Flag.CHANGED if found.version else ApprovedAnswer.Flag.GONE
            source.approved.flag_for_review(flag)
        elif found.version != source.text_version:
            source.text_version = found.version
            source.save(update_fields=["text_version"])


def mail_flagged_answer_owners() -> int:
    told = 0
    due = Q(flag="") | ~Q(told_at=None)
    for approved in ApprovedAnswer.objects.exclude(due).select_related("owner"):
        if settings.MAIL_IS_SENT and approved.owner is not None and approved.owner.email:
            text = _("The approved answer to “%(question)s” has to be looked at: %(why)s.") % {
                "question": approved.question,
                "why": approved.get_flag_display(),
            }
            if approved.flag in ApprovedAnswer.WITHHELD_FLAGS:
                text += " " + _("Until somebody approves it again, readers do not get it.")
            try:
                subject = settings.EMAIL_SUBJECT_PREFIX + _("An approved answer has to be looked at")
                send_mail(subject, text, None, [approved.owner.email])
            except OSError as error:
                logger.warning("The owner of approved answer %d was not told: %s", approved.pk, error)
                continue
            told += 1
        ApprovedAnswer.objects.filter(pk=approved.pk).update(told_at=timezone.now())
    return told
