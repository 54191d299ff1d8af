"""Answers that say there is none: where the documents come near, and what may have been meant."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from django.db import DatabaseError
from django.utils.translation import gettext as _

from chat.composing.near import find_near
from chat.grounding.evidence.answerability import Evidence
from chat.grounding.places import put_in_place
from chat.questions.types import ValueKind
from chat.types import AnswerForm, Choice, Completed, Usage
from retrieval.lexical.words.vocabulary import CollectionVocabulary
from retrieval.reformulation.spelling import suggest
from retrieval.types import SearchFilters

logger = logging.getLogger(__name__)


def refuse(
    generator: str,
    question: str,
    evidence: Evidence,
    filters: SearchFilters,
    notices: Sequence[str] = (),
    usage: Usage | None = None,
    missing: str = "",
) -> Completed:
    """The documents do not answer: where they come near, and the question as it may have been meant."""
    try:
        meant = suggest(question, CollectionVocabulary(filters.collections, filters.readers))
    except DatabaseError as error:
        logger.warning("What a question may have meant was not looked up: %s", error)
        meant = ()
    near = find_near(question, evidence)
    text = _("The documents do not answer this question.")
    if near and missing:
        text = _("The documents say this about it, but not %(missing)s.") % {"missing": _name_of(missing)}
    return replace(
        refusal(generator, text, notices),
        usage=usage,
        near=put_in_place(near),
        choices=tuple(Choice(other, other) for other in meant),
    )


def _name_of(missing: str) -> str:
    """What is asked for and not there, in words."""
    names = {
        ValueKind.NUMBER: _("the number"),
        ValueKind.AMOUNT: _("the amount"),
        ValueKind.DURATION: _("how long or how often"),
        ValueKind.DATE: _("the date"),
        ValueKind.TIME: _("the time"),
        ValueKind.PERSON: _("the name"),
        ValueKind.PLACE: _("the place"),
        ValueKind.CONTACT: _("the number or address"),
    }
    return names[ValueKind(missing)]


def refusal(generator: str, text: str, notices: Sequence[str] = ()) -> Completed:
    notice = " ".join(notices)
    return Completed(text, (), refused=True, generator=generator, notice=notice, form=AnswerForm.REFUSAL)


def instruction_refusal() -> str:
    return _("This reads like an instruction to the site rather than a question. Ask about the documents.")
