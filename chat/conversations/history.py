from __future__ import annotations

from collections.abc import Mapping

from django.db.models import prefetch_related_objects

from chat.answering.checking.citations import find_markers
from chat.conversations import rights
from chat.models import Answer
from core.user_types import AnyUser
from retrieval.models import Document
from retrieval.types import Turn

REMEMBERED_TURNS = 3
_SOURCE_FIELDS = ("refused", "source_collections", "source_documents")
_TURN_FIELDS = (
    *("question", "text", "dialogue", "collection", "created_at", "sources", "alternatives", "choices"),
    *("narrowing_key", *_SOURCE_FIELDS),
)


def list_turns_before(answer: Answer, viewer: AnyUser | None = None) -> tuple[Turn, ...]:
    """Return the previous questions and answers, oldest first.

    If the client sent a history, it is returned instead. Answers that the asker or the ``viewer`` may not read are
    empty.
    """
    if answer.history is not None:
        return tuple(Turn(turn["question"], turn["answer"]) for turn in answer.history[-REMEMBERED_TURNS:])
    earlier = answer.list_earlier(REMEMBERED_TURNS, _TURN_FIELDS)
    prefetch_related_objects(earlier, "citations")
    withheld = rights.find_withheld_answers(answer.asker, earlier)
    if viewer is not None:
        withheld |= rights.find_withheld_answers(viewer, earlier)
    return tuple(
        Turn(turn.question)
        if turn.refused or turn.pk in withheld
        else Turn(turn.question, turn.text, *_find_cited_places(turn), dialogue=_find_dialogue(turn, answer))
        for turn in reversed(earlier)
    )


def _find_dialogue(turn: Answer, answer: Answer) -> tuple[Mapping[str, str], ...]:
    if not turn.dialogue or turn.collection_id != answer.collection_id:
        return ()
    documents = set(turn.source_documents)
    unchanged = Document.objects.filter(pk__in=documents, ingested_at__lt=turn.created_at).count()
    return tuple(turn.dialogue) if unchanged == len(documents) else ()


def _find_cited_places(answer: Answer) -> tuple[tuple[int, ...], tuple[str, ...]]:
    # A stopped answer has markers but no citations.
    named = {cited.marker for cited in answer.citations.all()} or {each.number for each in find_markers(answer.text)}
    cited = [source["document"] for source in answer.sources if source["marker"] in named]
    documents = dict.fromkeys(document["id"] for document in cited)
    collections = dict.fromkeys(document["collection"] for document in cited if document.get("collection"))
    return tuple(documents), tuple(collections)


def store_sources_behind(answer: Answer) -> None:
    """Store the ids of all collections and documents from which the answer's text may contain words."""
    documents = rights.list_document_ids(answer.shown_passages)
    collections = rights.find_collections(documents)
    if answer.choices:
        searched = rights.list_readable_collections(answer.asker)
        collections |= searched if answer.collection_id is None else {answer.collection_id}
    if answer.completed_question or answer.prompt_version is not None:
        of_earlier, earlier = find_earlier_sources(answer)
        collections, documents = collections | of_earlier, documents | earlier
    answer.source_collections, answer.source_documents = sorted(collections), sorted(documents)


def find_earlier_sources(answer: Answer) -> tuple[frozenset[int], frozenset[int]]:
    """Return the source collections and documents of the REMEMBERED_TURNS answers before this answer.

    This answer may repeat words of those answers, so its readers need access to their sources too. Refusals are left
    out. Both results are empty if the client sent the earlier questions and answers itself.
    """
    if answer.history is not None:
        return frozenset(), frozenset()
    telling = [earlier for earlier in answer.list_earlier(REMEMBERED_TURNS, _SOURCE_FIELDS) if not earlier.refused]
    return (
        frozenset(pk for earlier in telling for pk in earlier.source_collections),
        frozenset(pk for earlier in telling for pk in earlier.source_documents),
    )
