"""Let a curator store a question with a passage, so that a search for the question finds the passage.

Before a question or an approved answer is saved, the curator sees the answer that users would get.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext as _

from chat.curation.asking_again import ask_again, build_answer_context
from chat.curation.curation_admin import ApprovedAnswerForm, OfferedPassage
from chat.models import Answer
from core.user_types import AnyUser
from retrieval.documents.drafts.editing import find_reason_not_to_change, lock_collections_for_change
from retrieval.exceptions import DocumentRejected
from retrieval.index.chunk_writer import replace_chunk_questions
from retrieval.models import Chunk, Collection, Document
from retrieval.search.passage_rows import load_passages
from retrieval.text.questions import normalize_question

MOST_QUESTIONS = 5


class TrialOutcome(StrEnum):
    """The result of a trial: the answer quotes the passage, has it as a source, or lacks it; or there is no answer."""

    QUOTED = "quoted"
    SOURCE = "source"
    ABSENT = "absent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CurationTrial:
    """The answer that readers would get after a change that a curator has not saved yet.

    ``action`` is the value of the save button in the form with the id ``form``. ``refusal`` is why the change cannot be
    saved.
    """

    action: str = ""
    shown: Mapping[str, object] = field(default_factory=dict)
    passage: OfferedPassage | None = None
    outcome: str = ""
    other_collection: str = ""
    form: str = ""
    refusal: str = ""


def preview_question_assignment(user: AnyUser, chunk_id: str, answer: Answer) -> CurationTrial:
    """Return the answer that users would get if the question of ``answer`` were stored with this passage.

    Raises: PermissionDenied.
    """
    question = answer.standalone_question
    planned = _plan_question_move_to_chunk(user, chunk_id, question)
    if not planned:
        return CurationTrial(refusal=_get_passage_choice_message())
    for changed in planned:
        if refusal := find_reason_not_to_change(changed.collection):
            return CurationTrial(refusal=refusal)
    chunk = next(iter(planned))
    passage = load_passages([chunk.pk]).get(chunk.pk)
    if passage is None:
        return CurationTrial(refusal=_get_passage_choice_message())
    shown = ask_again(user, answer, {changed.pk: questions for changed, questions in planned.items()})
    searched = answer.collection if answer.document is None else answer.document.collection
    elsewhere = searched is not None and searched.pk != chunk.collection_id
    return CurationTrial(
        action="give",
        shown=shown,
        passage=OfferedPassage(1, passage, question),
        outcome=_find_trial_outcome(shown, chunk.pk),
        other_collection=str(searched) if elsewhere else "",
    )


def _find_trial_outcome(shown: Mapping[str, Any], chunk_id: int) -> TrialOutcome:
    if shown["answer"].error:
        return TrialOutcome.FAILED
    if chunk_id in shown["quoted"]:
        return TrialOutcome.QUOTED
    return TrialOutcome.SOURCE if chunk_id in shown["sources"] else TrialOutcome.ABSENT


def preview_approval(form: ApprovedAnswerForm, user: AnyUser) -> CurationTrial | None:
    """Return the approved answer as readers would see it; None if the form is invalid. Raises: PermissionDenied."""
    if not user.has_perm("chat.add_approvedanswer"):
        raise PermissionDenied
    if not form.is_valid():
        return None
    answer = Answer(question=form.cleaned_data["question"], text=form.cleaned_data["text"])
    chosen = [offer for offer in form.offers if offer.choice_value in form.cleaned_data["passages"]]
    return CurationTrial(action="approve", shown={**build_answer_context(answer), "cited": chosen}, form="approve")


def _get_passage_choice_message() -> str:
    return _("Choose a passage of a collection that you may change.")


def _plan_question_move_to_chunk(user: AnyUser, chunk_id: str, question: str) -> dict[Chunk, list[str]]:
    """Return the passages that would change, with their new questions, if ``question`` were moved to a passage.

    The passage ``chunk_id`` comes first; if the user may not change it, the result is empty. Raises: PermissionDenied.
    """
    if not user.has_perm("retrieval.change_chunk"):
        raise PermissionDenied
    chunks = Chunk.objects.filter(
        collection__in=Collection.objects.curated_by(user), document__in=Document.objects.readable_by(user)
    ).select_related("collection")
    chunk = chunks.filter(pk=chunk_id).first() if chunk_id.isdecimal() and len(chunk_id) < 19 else None
    if chunk is None:
        return {}
    had_it = chunks.filter(questions_edited=True, canonical_questions__contains=[question]).exclude(pk=chunk.pk)
    return {
        chunk: [question, *_list_other_questions(question, chunk)][:MOST_QUESTIONS],
        **{other: _list_other_questions(question, other) for other in had_it},
    }


def assign_question_to_passage(user: AnyUser, chunk_id: str, question: str) -> str:
    """Assign the question to this passage, and remove it from others. Return an error message, or "".

    Raises: PermissionDenied.
    """
    planned = _plan_question_move_to_chunk(user, chunk_id, question)
    try:
        with lock_collections_for_change(*{changed.collection_id for changed in planned}):
            for changed, questions in reversed(planned.items()):
                replace_chunk_questions(changed, questions)
    except DocumentRejected as error:
        return str(error)
    except Chunk.DoesNotExist:
        return _get_passage_choice_message()
    return "" if planned else _get_passage_choice_message()


def _list_other_questions(question: str, chunk: Chunk) -> list[str]:
    return [each for each in chunk.canonical_questions if normalize_question(each) != normalize_question(question)]
