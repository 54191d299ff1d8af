"""What was said before a question in its conversation."""

from __future__ import annotations

from chat.models import Answer
from retrieval.types import Turn

# A follow-up refers to what was just said; older turns would cost a model's attention and name the wrong things.
REMEMBERED_TURNS = 3
# What became of the questions that a later one is told of.
TOLD = (Answer.Status.COMPLETED, Answer.Status.STOPPED)


def turns_before(answer: Answer) -> tuple[Turn, ...]:
    """The last questions of the answer's conversation that were answered, with their answers, oldest first.

    A refusal counts as an empty answer: its question still says what is being talked about. When the question brought
    its history along, that counts in place of the conversation's.
    """
    if answer.history is not None:
        return tuple(Turn(told["question"], told["answer"]) for told in answer.history[-REMEMBERED_TURNS:])
    earlier = Answer.objects.filter(
        conversation=answer.conversation_id,
        created_at__lt=answer.created_at,
        status__in=TOLD,
    ).order_by("-created_at")[:REMEMBERED_TURNS]
    return tuple(Turn(turn.question, "" if turn.refused else turn.text) for turn in reversed(earlier))
