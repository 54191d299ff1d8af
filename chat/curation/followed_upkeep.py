"""Find changes of followed answers, and send mails about them.

If a worker is killed, a mail may be sent twice, with the same Message-ID.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.conversations.following import find_changed_answers, may_be_mailed, may_follow_answer
from chat.models import ChangeNotice, FollowedAnswer
from chat.pages.changes import PassageChange, find_changes, list_distinct_changes
from core.exceptions import LeaseLost
from core.job_queue import enqueue_on_commit, sweeping
from core.jobs import acquire_lease, build_retry_due_condition, heartbeat

logger = logging.getLogger(__name__)

KEPT_FOR = timedelta(days=7)
MOST_TOLD = 10


@receiver(sweeping, dispatch_uid="chat.look_after_followed")
def _create_and_delete_change_notices(**_options: Any) -> None:
    if settings.MAIL_IS_SENT:
        create_change_notices()
    ChangeNotice.objects.filter(finished_at__lt=timezone.now() - KEPT_FOR).delete()


def create_change_notices() -> int:
    """Create a notice (a mail to send) for each followed answer with new changes; return the number of notices."""
    stored = 0
    for followed_id, digest in find_changed_answers():
        with transaction.atomic():
            rows = FollowedAnswer.objects.select_for_update(skip_locked=True, no_key=True)
            followed = rows.filter(pk=followed_id).exclude(checked=digest).first()
            if followed is None:
                continue
            keys = sorted({change.key for change in list_changes_of_followed_answer(followed)})
            new = sorted(set(keys) - set(followed.told))
            followed.told, followed.checked = keys, digest
            followed.save(update_fields=["told", "checked"])
            if new:
                notice = ChangeNotice.objects.create(followed=followed, changes=new)
                enqueue_on_commit(ChangeNotice, [notice.pk])
                stored += 1
    return stored


def list_changes_of_followed_answer(followed: FollowedAnswer) -> tuple[PassageChange, ...]:
    citations = list(followed.answer.citations.all())
    return list_distinct_changes(find_changes(citations), citations)


def send_notice(notice_id: int) -> ChangeNotice | None:
    """Try once to send the mail of a notice. Return None if another worker is sending it."""
    notice = acquire_lease(
        ChangeNotice.unfinished().filter(build_retry_due_condition()), notice_id, status=ChangeNotice.RUNNING
    )
    if notice is None:
        return None
    try:
        with heartbeat(notice):
            mail = _build_mail(notice)
            if mail is not None:
                mail.send()
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except OSError as error:
        notice.retry(str(error))
    else:
        notice.end(ChangeNotice.Status.DONE)
    notice.refresh_from_db()
    return notice


def _build_mail(notice: ChangeNotice) -> EmailMessage | None:
    followed = FollowedAnswer.objects.select_related("user", "answer__conversation").get(pk=notice.followed_id)
    user, answer = followed.user, followed.answer
    if not may_be_mailed(user) or not may_follow_answer(user, answer):
        return None
    changes = [change for change in list_changes_of_followed_answer(followed) if change.key in notice.changes]
    if not changes:
        return None
    origin = followed.address.partition("/c/")[0].partition("/s/")[0]
    with translation.override(followed.language):
        parts = [_("The documents behind an answer that you follow have changed."), answer.question]
        parts += [_describe(change, origin) for change in changes[:MOST_TOLD]]
        if len(changes) > MOST_TOLD:
            more = len(changes) - MOST_TOLD
            parts.append(ngettext("And %d more passage.", "And %d more passages.", more) % more)
        parts.append(_("The answer with its changes:") + f"\n{followed.address}")
        parts.append(_("You get this mail because you follow this answer. The page of your account ends that."))
        subject = settings.EMAIL_SUBJECT_PREFIX + _("An answer that you follow has grown old")
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "ragsite"
    headers = {"Message-ID": f"<change-{notice.pk}-{int(notice.created_at.timestamp())}@{domain}>"}
    return EmailMessage(subject, "\n\n".join(parts) + "\n", None, [user.email], headers=headers)


def _describe(change: PassageChange, origin: str) -> str:
    lines = [f"[{change.marker}] {change.title}: {change.kind.label}"]
    lines.append(_("When this was answered: %s") % change.then)
    if change.now:
        lines.append(_("Now: %s") % change.now)
    if change.href:
        lines.append(f"{origin}{change.href}")
    return "\n".join(lines)
