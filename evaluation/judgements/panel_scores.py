"""What judges say of an answer, for the chat's debug panel, which asks again while something is pending."""

from __future__ import annotations

from collections.abc import Iterator

from chat.debugging.scores import PanelScore
from chat.models import Answer
from evaluation.models import Judgement


def scores_of_answer(answer: Answer) -> Iterator[PanelScore]:
    """Each score or error that is there, the rules' before the model's, and a row for each judge not yet done."""
    order = {judge.value: place for place, judge in enumerate(Judgement.Judge)}
    judgements = Judgement.objects.filter(answer=answer).prefetch_related("scores")
    for judgement in sorted(judgements, key=lambda judgement: order[judgement.judge]):
        judge = judgement.get_judge_display()
        errors = 0
        for score in judgement.scores.all():
            errors += score.score is None
            yield PanelScore(
                f"{score.get_metric_display()} ({judge})", score=score.score, error=score.error, reason=score.reason
            )
        if not judgement.is_finished:
            yield PanelScore(judge, reason=judgement.error, pending=True)
        elif judgement.error and not errors:
            yield PanelScore(judge, error=judgement.error)
