from __future__ import annotations

from celery import shared_task


@shared_task
def delete_old() -> None:
    """Delete conversations older than CONVERSATION_DAYS, audit entries older than AUDIT_DAYS, and other old rows.

    The other rows are counters of the limits on questions, requests and sign-ins, and unanswered questions from Slack.
    """
    from chat import budgets
    from chat.conversations.retention import delete_old_conversations
    from ragsite.accounts import sign_in_limits
    from ragsite.models import SlackQuestion
    from ragsite.operations.audit_log import delete_old_entries, record_action
    from retrieval.api import throttling

    budgets.forget_old_counts()
    throttling.forget_old_counts()
    sign_in_limits.delete_expired_counts()
    SlackQuestion.delete_old_questions()
    if conversations := delete_old_conversations():
        record_action("retention.conversations_deleted", number=conversations)
    if entries := delete_old_entries():
        record_action("retention.audit_entries_deleted", number=entries)


@shared_task
def forget_deleted_documents() -> None:
    from chat.conversations.retention import forget_deleted_documents

    forget_deleted_documents()
