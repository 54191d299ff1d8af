"""The dashboard's lists and figures, ready for its templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.follow_up import DocumentToMend, documents_to_mend, trace_address
from chat.models import Answer, Feedback
from evaluation.admin.dashboard_charts import decimal, percent
from evaluation.dashboard.activity import Activity
from evaluation.dashboard.scope import Scope
from evaluation.dashboard.worst import UNANSWERED, UNHELPFUL, Wanted
from evaluation.figures import whole
from evaluation.models import Judgement, Score

_METRICS = (
    (Score.Metric.GROUNDEDNESS, Judgement.Judge.OFFLINE),
    (Score.Metric.ANSWER_RELEVANCY, Judgement.Judge.OFFLINE),
    (Score.Metric.FAITHFULNESS, Judgement.Judge.MODEL),
    (Score.Metric.ANSWER_RELEVANCY, Judgement.Judge.MODEL),
)


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure of the whole period, and the list behind it."""

    name: str
    figure: str
    note: str
    address: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A list of bad answers that can be chosen."""

    name: str
    address: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A bad answer, and where to mend it."""

    answer: Answer
    score: Score | None
    documents: list[DocumentToMend]

    @property
    def trace_address(self) -> str:
        return trace_address(self.answer)

    @property
    def feedback(self) -> Feedback | None:
        return getattr(self.answer, "feedback", None)


def answer_rows(answers: Sequence[Answer]) -> list[AnswerRow]:
    documents = documents_to_mend(answers)
    return [AnswerRow(answer, None, documents[answer.pk]) for answer in answers]


def score_rows(scores: Sequence[Score]) -> list[AnswerRow]:
    documents = documents_to_mend([score.judgement.answer for score in scores])
    return [AnswerRow(score.judgement.answer, score, documents[score.judgement.answer_id]) for score in scores]


def tiles(scope: Scope, total: Activity) -> list[Tile]:
    """The figures of the whole period; what nobody can know is a dash, with the reason."""
    return [
        Tile(_("Questions"), whole(total.asked), _("%s failed") % whole(total.failed), scope.answer_list()),
        Tile(
            _("Helpful rate"),
            percent(total.helpful_rate),
            _("of %s answers that were marked") % whole(total.rated) if total.rated else _("nobody marked an answer"),
            scope.address("answers", kind=UNHELPFUL),
        ),
        Tile(
            _("Refusals"),
            percent(total.refusal_rate),
            _("%s without an answer in the documents") % whole(total.refused),
            scope.address("answers", kind=UNANSWERED),
        ),
        Tile(
            _("Time to an answer"),
            _("%s s") % decimal(total.p50_ms / 1000) if total.p50_ms is not None else "–",
            _("p50; p95 is %s s") % decimal(total.p95_ms / 1000)
            if total.p95_ms is not None
            else _("no answer was written"),
            scope.answer_list(status__exact=Answer.Status.COMPLETED.value),
        ),
        Tile(
            _("Degraded searches"),
            whole(total.degraded),
            _("%s of the questions") % percent(total.degraded_rate) if total.asked else _("no question was asked"),
            scope.answer_list(degraded="yes"),
        ),
    ]


def kinds(scope: Scope, wanted: Wanted) -> list[Kind]:
    """The lists of bad answers there are; that of a bin of a chart counts as its metric's."""
    listed = [
        Kind(_("not helpful"), scope.address("answers", kind=UNHELPFUL), wanted.kind == UNHELPFUL),
        Kind(_("no answer in the documents"), scope.address("answers", kind=UNANSWERED), wanted.kind == UNANSWERED),
    ]
    for metric, judge in _METRICS:
        listed.append(
            Kind(
                _("low %(metric)s (%(judge)s)") % {"metric": metric.label, "judge": judge.label},
                scope.address("answers", kind=metric.value, judge=judge.value),
                wanted.kind == metric and wanted.judge == judge,
            )
        )
    return listed


def heading(wanted: Wanted) -> str:
    """What the list of bad answers holds."""
    if wanted.kind == UNHELPFUL:
        return _("Answers that did not help")
    if wanted.kind == UNANSWERED:
        return _("Questions without an answer in the documents")
    said = {"metric": Score.Metric(wanted.kind).label, "judge": Judgement.Judge(wanted.judge).label}
    if wanted.low is None or wanted.high is None:
        return _("Answers with low %(metric)s (%(judge)s)") % said
    bounds = {"low": decimal(wanted.low), "high": decimal(wanted.high)}
    return _("Answers with %(metric)s from %(low)s to %(high)s (%(judge)s)") % {**said, **bounds}


def make_case_address(user: AbstractBaseUser | AnonymousUser) -> str:
    """Where an answer becomes a test case; empty for those who may not make one."""
    may = isinstance(user, PermissionsMixin) and user.has_perm("evaluation.add_evaluationquestion")
    return reverse("admin:evaluation_make_case") if may else ""
