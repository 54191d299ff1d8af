"""Who may object to the publication of a search profile. Retrieval knows no gate: others register theirs.

An app registers a gate when it is ready::

    class EvaluationConfig(AppConfig):
        def ready(self) -> None:
            register_gate(objections_to)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from django.db import transaction
from django.utils.translation import gettext as _t

from retrieval.exceptions import RetrievalError
from retrieval.models import SearchProfileVersion

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a version should not be put in force, in a sentence for an admin; ``address`` is where to read more."""

    reason: str
    address: str = ""

    def __str__(self) -> str:
        return self.reason

    def as_json(self) -> dict[str, str]:
        return asdict(self)


class PublicationRefused(RetrievalError):
    """A gate objects, and nobody has given a reason to publish all the same. For the admin who publishes."""

    def __init__(self, objections: Sequence[Objection]) -> None:
        super().__init__(" ".join(objection.reason for objection in objections))
        self.objections = tuple(objections)


Gate = Callable[[SearchProfileVersion], Iterable[Objection]]

_gates: list[Gate] = []


def register_gate(gate: Gate) -> None:
    """Have ``gate`` asked before each publication; once, however often it is registered."""
    if gate not in _gates:
        _gates.append(gate)


def objections_to(version: SearchProfileVersion) -> tuple[Objection, ...]:
    """What the gates have against the version, in the order of their registration; empty without gates.

    A gate that fails objects: what could not be checked is not let through.
    """
    objections: list[Objection] = []
    for gate in tuple(_gates):
        try:
            # A query that fails must not take the publication's transaction with it.
            with transaction.atomic():
                objections += gate(version)
        except Exception as error:
            logger.exception("A gate could not be asked about %s.", version)
            told = _t("A gate could not be asked: %(error)s.") % {"error": f"{type(error).__name__}: {error}"}
            objections.append(Objection(told))
    return tuple(objections)
