"""Who may object to the publication of a search profile, or of a draft of documents. Retrieval knows no gate: others
register theirs.

An app registers a gate when it is ready::

    class EvaluationConfig(AppConfig):
        def ready(self) -> None:
            register_gate(objections_to)
            register_document_gate(DocumentGate(guards, objections_to_draft))
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from django.db import transaction
from django.utils.translation import gettext as _t

from retrieval.exceptions import RetrievalError
from retrieval.models import Collection, Draft, SearchProfileVersion

logger = logging.getLogger(__name__)

_Subject = TypeVar("_Subject")


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


@dataclass(frozen=True, slots=True)
class DocumentGate:
    """Which collections change by drafts alone, and what is against publishing a draft of one."""

    guards: Callable[[Collection], bool]
    objections_to: Callable[[Draft], Iterable[Objection]]


_gates: list[Gate] = []
_document_gates: list[DocumentGate] = []


def register_gate(gate: Gate) -> None:
    """Have ``gate`` asked before each publication of a version; once, however often it is registered."""
    if gate not in _gates:
        _gates.append(gate)


def register_document_gate(gate: DocumentGate) -> None:
    """Have ``gate`` asked before documents change; once, however often it is registered."""
    if gate not in _document_gates:
        _document_gates.append(gate)


def objections_to(version: SearchProfileVersion) -> tuple[Objection, ...]:
    """What the gates have against the version, in the order of their registration; empty without gates.

    A gate that fails objects: what could not be checked is not let through.
    """
    return _objections(_gates, version)


def objections_to_draft(draft: Draft) -> tuple[Objection, ...]:
    """What the gates have against publishing the draft, as for a version."""
    return _objections([gate.objections_to for gate in _document_gates], draft)


def documents_are_guarded(collection: Collection) -> bool:
    """Whether a gate has the collection's documents change by drafts alone."""
    return any(gate.guards(collection) for gate in _document_gates)


def _objections(asked: Iterable[Callable[[_Subject], Iterable[Objection]]], subject: _Subject) -> tuple[Objection, ...]:
    objections: list[Objection] = []
    for gate in tuple(asked):
        try:
            # A query that fails must not take the publication's transaction with it.
            with transaction.atomic():
                objections += gate(subject)
        except Exception as error:
            logger.exception("A gate could not be asked about %s.", subject)
            told = _t("A gate could not be asked: %(error)s.") % {"error": f"{type(error).__name__}: {error}"}
            objections.append(Objection(told))
    return tuple(objections)
