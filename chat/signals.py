"""Signals of the chat, which does not know their receivers."""

from django.dispatch import Signal

# Sent after an answer was saved as COMPLETED, with `answer`.
answer_completed = Signal()
# Sent when the scores of an `answer` are shown. Receivers return a list of `chat.debugging.scores.PanelScore`.
scores_wanted = Signal()
