"""Saved answers, as the chat leaves them when they are complete."""

from django.utils import timezone

from chat.models import Answer, Conversation
from chat.streaming import payloads
from tests.support.contexts import source

PUMP = "The pump weighs 3450 grams. It needs 230 volts and runs for ten years without service."
OFFICE = "The office in Ghent opens at nine. On Fridays it closes at four in the afternoon."


def completed_answer(text="The pump weighs 3450 grams [1].", **changed):
    """Return an answer to "How heavy is the pump?", whose source is the pump's passage unless a test passes another."""
    contents = changed.pop("contents", (PUMP,))
    values = {
        "question": "How heavy is the pump?",
        "text": text,
        "status": Answer.Status.COMPLETED,
        "completed_at": timezone.now(),
        "search_method": "zscore",
        "sources": [
            payloads.build_source_payload(source(content, marker=marker), "")
            for marker, content in enumerate(contents, start=1)
        ],
    }
    return Answer.objects.create(conversation=Conversation.objects.create(visitor="v"), **{**values, **changed})
