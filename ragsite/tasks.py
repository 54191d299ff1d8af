"""Background work of the site as a whole."""

from __future__ import annotations

from celery import shared_task


@shared_task
def delete_old() -> None:
    """Delete what CONVERSATION_DAYS and AUDIT_DAYS say."""
    from chat.budgets import forget_old_counts
    from chat.conversations.retention import delete_old_conversations
    from ragsite.operations.audit_log import delete_old_entries, record

    forget_old_counts()
    if conversations := delete_old_conversations():
        record("retention.conversations_deleted", number=conversations)
    if entries := delete_old_entries():
        record("retention.audit_entries_deleted", number=entries)


@shared_task
def forget_deleted_documents() -> None:
    from chat.conversations.retention import forget_deleted_documents

    forget_deleted_documents()


@shared_task
def forget_sign_ins() -> None:
    from ragsite.accounts import sign_in_limits
    from retrieval.api.throttling import forget_old_counts

    sign_in_limits.forget_old()
    forget_old_counts()
