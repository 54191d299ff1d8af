"""What was said before a question in its conversation."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser

from chat.conversations import rights
from chat.models import Answer
from retrieval.types import Turn

# A follow-up refers to what was just said; older turns would cost a model's attention and name the wrong things.
REMEMBERED_TURNS = 3
# A later question is completed from answers of these.
REMEMBERED_STATUSES = (Answer.Status.COMPLETED, Answer.Status.STOPPED)


def turns_before(answer: Answer) -> tuple[Turn, ...]:
    """The last questions of the answer's conversation that were answered, with their answers, oldest first.

    A refusal counts as an empty answer: its question still says what is being talked about. So does an answer that the
    asker may not read any more. When the question brought its history along, that counts in place of the
    conversation's.
    """
    if answer.history is not None:
        return tuple(Turn(turn["question"], turn["answer"]) for turn in answer.history[-REMEMBERED_TURNS:])
    earlier = _answers_before(answer)
    withheld = rights.withheld_from(answer.conversation.owner or AnonymousUser(), earlier)
    return tuple(
        Turn(turn.question, "" if turn.refused or turn.pk in withheld else turn.text) for turn in reversed(earlier)
    )


def collections_behind(answer: Answer) -> list[int]:
    """The collections that the answer's text may rest on: those of its sources, and of what it may say again.

    A question that was completed from earlier answers, or put to a model with them, may repeat what they said.
    """
    behind = set(rights.collections_of(answer.sources))
    if answer.completed_question or answer.prompt_version is not None:
        behind |= collections_before(answer)
    return sorted(behind)


def collections_before(answer: Answer) -> frozenset[int]:
    """The collections behind the answers that came before this one and count for it."""
    if answer.history is not None:
        return frozenset()
    return frozenset(pk for turn in _answers_before(answer) if not turn.refused for pk in turn.source_collections)


def _answers_before(answer: Answer) -> list[Answer]:
    """Newest first."""
    earlier = Answer.objects.filter(
        conversation=answer.conversation_id,
        created_at__lt=answer.created_at,
        status__in=REMEMBERED_STATUSES,
    ).order_by("-created_at")
    return list(earlier[:REMEMBERED_TURNS])
