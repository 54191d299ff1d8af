"""Background work of the site as a whole."""

from __future__ import annotations

from celery import shared_task


@shared_task
def forget_sign_ins() -> None:
    from ragsite.sign_in import limits

    limits.forget_old()
