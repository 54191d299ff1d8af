"""Quality gates: checks that other apps add. A check may object before a search profile or a draft is published."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _t

from core.exceptions import RagsiteError
from retrieval.models import Collection, Draft, SearchProfileVersion

logger = logging.getLogger(__name__)
Publishable = SearchProfileVersion | Draft


@dataclass(frozen=True, slots=True)
class PublicationObjection:
    reason: str
    address: str = ""


class PublicationRefused(RagsiteError):
    """An error: a gate objects to a publication, and the user gave no reason to publish anyway."""

    def __init__(self, objections: Sequence[PublicationObjection]) -> None:
        super().__init__(" ".join(objection.reason for objection in objections))
        self.objections = tuple(objections)


@dataclass(frozen=True, slots=True)
class Gate:
    """A check before a search profile or a draft (an unpublished copy of a collection) is published.

    If ``guards`` returns true for a collection, its documents can only be changed in a draft.
    """

    find_objections: Callable[[Publishable], Iterable[PublicationObjection]]
    guards: Callable[[Collection], bool]


GATES: list[Gate] = []


def is_changeable_only_in_drafts(collection: Collection) -> bool:
    return any(gate.guards(collection) for gate in GATES)


def find_publication_objections(subject: Publishable) -> tuple[PublicationObjection, ...]:
    """Return the objections of all gates, in the order of GATES. An error in a gate counts as an objection."""
    objections: list[PublicationObjection] = []
    for gate in GATES:
        try:
            # A savepoint protects the caller's transaction from a failed query.
            with transaction.atomic():
                objections += gate.find_objections(subject)
        except Exception as error:
            logger.exception("A gate could not be asked about %s.", subject)
            told = _t("A gate could not be checked: %(error)s.") % {"error": f"{type(error).__name__}: {error}"}
            objections.append(PublicationObjection(told))
    return tuple(objections)
