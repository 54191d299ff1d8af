"""Reformulation without a model: fillers off, and follow-up questions completed from the conversation. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrieval.reformulation.fillers import without_fillers
from retrieval.reformulation.followups import complete
from retrieval.reformulation.topics import Topic, topic_after
from retrieval.types import Reformulation, Turn

NAME = "rules"


class RuleBasedReformulator:
    """Implements ``QueryReformulator``, in English and Dutch; a question of another language stays as it is.

    Content words, quotations, code and excluded words of the question are all still in what comes back.
    """

    def reformulate(self, question: str, history: Sequence[Turn] = ()) -> Reformulation:
        topic: Topic | None = None
        for turn in history:
            asked = without_fillers(" ".join(turn.question.split()))
            completed = complete(asked, topic)
            topic = completed.topic if completed is not None else topic_after(topic, asked)
            if topic is not None:
                topic = replace(topic, answer=turn.answer)
        asked = without_fillers(question)
        rules = ["filler words off"] if asked != question.strip() else []
        completed = complete(asked, topic)
        if completed is not None:
            asked = completed.question
            rules.append(completed.rule)
        reason = "; ".join(rules)
        return Reformulation(asked, asked != question, reason, by=NAME, completed=completed is not None)
