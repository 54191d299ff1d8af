"""Who may object to the publication of a search profile, or of a draft of documents. Retrieval knows no gate: an app
adds its own to GATES when it is ready.
"""

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
class Objection:
    """Why a version should not be published, in a sentence for an admin; ``address`` is a page with details."""

    reason: str
    address: str = ""


class PublicationRefused(RagsiteError):
    """A gate objects, and no reason to publish anyway was given. For the admin who publishes."""

    def __init__(self, objections: Sequence[Objection]) -> None:
        super().__init__(" ".join(objection.reason for objection in objections))
        self.objections = tuple(objections)


@dataclass(frozen=True, slots=True)
class Gate:
    """A check before publication: ``objections_to`` a version or a draft, and which collections it ``guards``, so that
    they change only in drafts.
    """

    objections_to: Callable[[Publishable], Iterable[Objection]]
    guards: Callable[[Collection], bool]


GATES: list[Gate] = []


def documents_are_guarded(collection: Collection) -> bool:
    """Whether a gate requires that the collection's documents are changed only in drafts."""
    return any(gate.guards(collection) for gate in GATES)


def objections_to(subject: Publishable) -> tuple[Objection, ...]:
    """The gates' objections to publishing it, in the order of GATES; empty without gates.

    A gate that fails counts as an objection.
    """
    objections: list[Objection] = []
    for gate in GATES:
        try:
            # A query that fails must not take the publication's transaction with it.
            with transaction.atomic():
                objections += gate.objections_to(subject)
        except Exception as error:
            logger.exception("A gate could not be asked about %s.", subject)
            told = _t("A gate could not be checked: %(error)s.") % {"error": f"{type(error).__name__}: {error}"}
            objections.append(Objection(told))
    return tuple(objections)
