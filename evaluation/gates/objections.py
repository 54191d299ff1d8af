"""What gates have against publishing, in sentences, and which collections they guard."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext as _t

from evaluation.figures import fixed
from evaluation.gates.verdicts import GateCheck, Verdict, check, kind_of
from evaluation.models import GatePolicy, RunKind
from retrieval.gates import Objection
from retrieval.models import Collection, Draft, SearchProfileVersion

_POLICIES = GatePolicy.objects.select_related("evaluation_set__collection")


def guards(collection: Collection) -> bool:
    """Whether the collection's documents change by drafts alone, because a gate is asked before."""
    return GatePolicy.objects.filter(required_for_documents=True, evaluation_set__collection=collection).exists()


def objections_to(version: SearchProfileVersion) -> Iterator[Objection]:
    """Why the gates that are required for publishing would not publish the version, a reason each."""
    for policy in _POLICIES.filter(required_for_publishing=True):
        checked = check(policy, version)
        if checked.objects:
            address = reverse("admin:evaluation_gatepolicy_check", args=[policy.pk, version.pk])
            yield Objection(reason_of(checked), address)


def objections_to_draft(draft: Draft) -> Iterator[Objection]:
    """Why the gates that guard the draft's collection would not publish the draft, a reason each."""
    for policy in _POLICIES.filter(required_for_documents=True, evaluation_set__collection=draft.collection_id):
        checked = check(policy, draft)
        if checked.objects:
            address = reverse("admin:evaluation_gatepolicy_check_draft", args=[policy.pk, draft.pk])
            yield Objection(reason_of(checked), address)


def reason_of(checked: GateCheck) -> str:
    """The verdict in a sentence."""
    names = {
        "set": checked.policy.evaluation_set,
        "candidate": checked.candidate,
        "in_force": checked.in_force,
        "metric": checked.policy.get_metric_display(),
    }
    if checked.comparison is not None and (difference := checked.comparison.difference) is not None:
        numbers = {
            "difference": fixed(difference.mean, 3, signed=True),
            "interval": f"{fixed(difference.low, 3, signed=True)} … {fixed(difference.high, 3, signed=True)}",
            "allowed": fixed(checked.policy.largest_loss, 3),
        }
        told = (
            _t(
                "%(set)s: %(candidate)s is significantly worse than %(in_force)s: %(metric)s %(difference)s "
                "(%(interval)s), allowed is a loss of %(allowed)s."
            )
            if checked.verdict is Verdict.WORSE
            else _t(
                "%(set)s: %(candidate)s is not significantly worse than %(in_force)s: %(metric)s %(difference)s "
                "(%(interval)s), allowed is a loss of %(allowed)s."
            )
        )
        return told % (names | numbers)
    return {
        Verdict.IN_FORCE: _t("%(set)s: %(candidate)s has the settings that are in force."),
        Verdict.EMPTY: _t("%(set)s: no question has an expected passage, so nothing can be measured.")
        if kind_of(checked.policy) == RunKind.SEARCH
        else _t("%(set)s: no question says what “%(metric)s” tells of, so nothing can be measured."),
        Verdict.RUNNING: _t("%(set)s: %(candidate)s is being measured."),
        Verdict.BEING_READ: _t("%(set)s: documents of %(candidate)s are still being read."),
    }.get(
        checked.verdict,
        _t("%(set)s: %(candidate)s and %(in_force)s have not both been measured on the documents as they are now."),
    ) % names
