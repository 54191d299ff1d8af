from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.db.models import Count, Model, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, ngettext_lazy

from chat.models import ApprovedAnswer
from core.user_types import AnyUser
from evaluation.dashboard.gaps import find_unanswered_questions
from evaluation.dashboard.scope import DEFAULT_DAYS, build_scope
from retrieval.models import Collection, Document, Draft, Source, SourceRun
from retrieval.models.collection import CollectionQuerySet
from retrieval.rights.staff import list_source_collections

DUE_DAYS = 14
WEEK_DAYS = 7


class FrontPageCounts:
    """Counts of objects that ``user`` may see, for the admin's first page. Working copies of drafts do not count."""

    def __init__(self, user: AnyUser) -> None:
        self.user = user
        self.today = timezone.localdate()

    @cached_property
    def _collections(self) -> CollectionQuerySet:
        return Collection.objects.curated_by(self.user).in_service()

    @cached_property
    def document_counts(self) -> dict[str, int]:
        statuses = Document.Status
        rows = Document.objects.readable_by(self.user).filter(collection__in=self._collections)
        return rows.aggregate(
            all=Count("pk"),
            waiting=Count("pk", filter=Q(status__in=[statuses.PENDING, statuses.PROCESSING])),
            failed=Count("pk", filter=Q(status=statuses.FAILED)),
            due=Count("pk", filter=Q(review_on__lte=self.today)),
        )

    @cached_property
    def collection_counts(self) -> dict[str, int]:
        empty = ~Q(pk__in=Document.objects.readable_by(self.user).order_by().values("collection"))
        return self._collections.aggregate(all=Count("pk"), empty=Count("pk", filter=empty))

    @cached_property
    def source_counts(self) -> dict[str, int]:
        runs = SourceRun.objects.filter(source=OuterRef("pk"), is_preview=False).order_by("-pk")
        rows = Source.objects.filter(collection__in=list_source_collections(self.user))
        return rows.annotate(last=Subquery(runs.values("status")[:1])).aggregate(
            all=Count("pk"),
            failed=Count("pk", filter=Q(last=SourceRun.Status.FAILED)),
            paused=Count("pk", filter=Q(is_paused=True)),
        )

    @cached_property
    def unanswered_question_count(self) -> int:
        return find_unanswered_questions(build_scope(self.user))[1]

    @cached_property
    def answer_counts(self) -> dict[str, int]:
        rows = build_scope(self.user, WEEK_DAYS).answers()
        return rows.order_by().aggregate(
            all=Count("pk"),
            unhelpful=Count("pk", filter=Q(feedback__helpful=False)),
            refused=Count("pk", filter=Q(refused=True)),
        )

    @cached_property
    def approved_answer_counts(self) -> dict[str, int]:
        rows = ApprovedAnswer.objects.filter(
            state=ApprovedAnswer.State.APPROVED, collection__in=self._curated_collections
        )
        soon = Q(flag="", expires_on__lte=self.today + timedelta(days=DUE_DAYS))
        return rows.aggregate(all=Count("pk"), flagged=Count("pk", filter=~Q(flag="")), soon=Count("pk", filter=soon))

    @cached_property
    def _curated_collections(self) -> QuerySet[Collection]:
        return Collection.objects.curated_by(self.user)

    @cached_property
    def draft_count(self) -> int:
        return Draft.objects.filter_open().filter(collection__in=self._curated_collections).count()

    def list_tasks(self) -> list[tuple[int, str, str]]:
        user = self.user
        document_list = reverse("admin:retrieval_document_changelist")
        tasks: list[tuple[int, Any, str]] = []
        if user.has_perm("retrieval.view_document"):
            said = ngettext_lazy("%d document could not be read.", "%d documents could not be read.")
            tasks.append((self.document_counts["failed"], said, f"{document_list}?status__exact=failed"))
        if user.has_perm("retrieval.view_source"):
            said = ngettext_lazy("The last run of %d source failed.", "The last runs of %d sources failed.")
            tasks.append((self.source_counts["failed"], said, reverse("admin:retrieval_source_changelist")))
        if user.has_perm("chat.view_answer"):
            said = ngettext_lazy("%d question was not answered well.", "%d questions were not answered well.")
            address = reverse("admin:evaluation_dashboard_gaps")
            tasks.append((self.unanswered_question_count, said, f"{address}?days={DEFAULT_DAYS}"))
        if user.has_perm("chat.view_approvedanswer"):
            address = reverse("admin:chat_approvedanswer_changelist")
            said = ngettext_lazy("%d approved answer has to be looked at.", "%d approved answers have to be looked at.")
            tasks.append((self.approved_answer_counts["flagged"], said, f"{address}?flagged=yes"))
            said = ngettext_lazy("%d approved answer expires soon.", "%d approved answers expire soon.")
            tasks.append((self.approved_answer_counts["soon"], said, f"{address}?o=5"))
        if user.has_perm("retrieval.view_document"):
            said = ngettext_lazy("%d document is due for a review.", "%d documents are due for a review.")
            tasks.append((self.document_counts["due"], said, f"{document_list}?review=due"))
        if user.has_perm("retrieval.view_draft"):
            said = ngettext_lazy("%d draft is not published yet.", "%d drafts are not published yet.")
            tasks.append((self.draft_count, said, reverse("admin:retrieval_draft_changelist")))
        return [(number, said % number, address) for number, said, address in tasks if number]

    def describe_card(self, model: str) -> tuple[int, str, list[str]] | None:
        """Return the text for the card of a model on the admin's first page; None if the card shows no number.

        The text consists of the number of objects, the noun after it, and remarks.
        """
        count = _CARDS.get(model)
        return count(self) if count is not None and self.user.has_perm(_PERMISSIONS[model]) else None


def _format_card_remarks(*counted: tuple[int, Any]) -> list[str]:
    return [said % number for number, said in counted if number]


def _choose_model_noun(model: type[Model], number: int) -> str:
    return str(model._meta.verbose_name if number == 1 else model._meta.verbose_name_plural)


def _describe_documents(figures: FrontPageCounts) -> tuple[int, str, list[str]]:
    found = figures.document_counts
    notes = _format_card_remarks(
        (found["waiting"], _("%d waiting")), (found["failed"], _("%d failed")), (found["due"], _("%d due for a review"))
    )
    return found["all"], _choose_model_noun(Document, found["all"]), notes


def _describe_collections(figures: FrontPageCounts) -> tuple[int, str, list[str]]:
    found = figures.collection_counts
    return (
        found["all"],
        _choose_model_noun(Collection, found["all"]),
        _format_card_remarks((found["empty"], _("%d empty"))),
    )


def _describe_gaps(figures: FrontPageCounts) -> tuple[int, str, list[str]]:
    said = ngettext("question in %d days", "questions in %d days", figures.unanswered_question_count)
    return figures.unanswered_question_count, said % DEFAULT_DAYS, []


def _describe_answers(figures: FrontPageCounts) -> tuple[int, str, list[str]]:
    found = figures.answer_counts
    notes = _format_card_remarks(
        (found["unhelpful"], _("%d not helpful")), (found["refused"], _("%d without an answer"))
    )
    return found["all"], _t("new this week"), notes


def _describe_approved_answers(figures: FrontPageCounts) -> tuple[int, str, list[str]]:
    found = figures.approved_answer_counts
    notes = _format_card_remarks((found["flagged"], _("%d to look at")), (found["soon"], _("%d expire soon")))
    return found["all"], _t("approved"), notes


def _describe_drafts(figures: FrontPageCounts) -> tuple[int, str, list[str]]:
    return figures.draft_count, _t("open"), []


def _describe_sources(figures: FrontPageCounts) -> tuple[int, str, list[str]]:
    found = figures.source_counts
    notes = _format_card_remarks((found["failed"], _("%d failed")), (found["paused"], _("%d paused")))
    return found["all"], _choose_model_noun(Source, found["all"]), notes


_CARDS: dict[str, Callable[[FrontPageCounts], tuple[int, str, list[str]]]] = {
    "retrieval.document": _describe_documents,
    "retrieval.collection": _describe_collections,
    "evaluation.gaps": _describe_gaps,
    "chat.answer": _describe_answers,
    "chat.approvedanswer": _describe_approved_answers,
    "retrieval.draft": _describe_drafts,
    "retrieval.source": _describe_sources,
}
_PERMISSIONS = {
    "retrieval.document": "retrieval.view_document",
    "retrieval.collection": "retrieval.view_collection",
    "evaluation.gaps": "chat.view_answer",
    "chat.answer": "chat.view_answer",
    "chat.approvedanswer": "chat.view_approvedanswer",
    "retrieval.draft": "retrieval.view_draft",
    "retrieval.source": "retrieval.view_source",
}
