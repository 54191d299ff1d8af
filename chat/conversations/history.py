"""Reads earlier questions and answers of a conversation."""

from __future__ import annotations

from chat.answering.checking.citations import find_markers
from chat.conversations import rights
from chat.models import Answer
from retrieval.models import Document
from retrieval.types import Turn

# A follow-up refers to the latest turns; older turns would distract a model.
REMEMBERED_TURNS = 3


def list_turns_before(answer: Answer) -> tuple[Turn, ...]:
    """Return the last answered questions of the answer's conversation, with their answers, oldest first.

    Refusals, and answers that the asker may no longer read, count as empty answers, because their questions still give
    the subject. A history that came with the question is used instead.
    """
    if answer.history is not None:
        return tuple(Turn(turn["question"], turn["answer"]) for turn in answer.history[-REMEMBERED_TURNS:])
    earlier = answer.list_earlier(REMEMBERED_TURNS)
    withheld = rights.withheld_from(answer.asker, earlier)
    return tuple(
        Turn(turn.question)
        if turn.refused or turn.pk in withheld
        else Turn(turn.question, turn.text, *_cited_places(turn), dialogue=_dialogue(turn, answer))
        for turn in reversed(earlier)
    )


def _dialogue(turn: Answer, answer: Answer) -> tuple[dict[str, str], ...]:
    """Return the model's messages of that turn; none if the collection or a document has changed since."""
    if not turn.dialogue or turn.collection_id != answer.collection_id:
        return ()
    documents = set(turn.source_documents)
    unchanged = Document.objects.filter(pk__in=documents, ingested_at__lt=turn.created_at).count()
    return tuple(turn.dialogue) if unchanged == len(documents) else ()


def _cited_places(answer: Answer) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the documents (ids) and collections (slugs) that the answer's text cites."""
    # A stopped answer was not checked, so it has markers but no citations.
    named = {cited.marker for cited in answer.citations.all()} or {each.number for each in find_markers(answer.text)}
    cited = [source["document"] for source in answer.sources if source["marker"] in named]
    documents = dict.fromkeys(document["id"] for document in cited)
    collections = dict.fromkeys(document["collection"] for document in cited if document.get("collection"))
    return tuple(documents), tuple(collections)


def fill_in_behind(answer: Answer) -> None:
    """Store the collections and documents that the answer quotes or whose content it may repeat.

    Content of earlier answers may be repeated if the question was rewritten from them, or sent to a model with them. A
    suggested question may contain words of any searched document.
    """
    documents = rights.documents_of(answer.quoted_places)
    collections = rights.collections_of(documents)
    if answer.choices:
        searched = rights.readable_collections(answer.asker)
        collections |= searched if answer.collection_id is None else {answer.collection_id}
    if answer.completed_question or answer.prompt_version is not None:
        of_earlier, earlier = behind_earlier(answer)
        collections, documents = collections | of_earlier, documents | earlier
    answer.source_collections, answer.source_documents = sorted(collections), sorted(documents)


def behind_earlier(answer: Answer) -> tuple[frozenset[int], frozenset[int]]:
    """Return the collections and documents behind the earlier answers that this answer may repeat."""
    if answer.history is not None:
        return frozenset(), frozenset()
    telling = [earlier for earlier in answer.list_earlier(REMEMBERED_TURNS) if not earlier.refused]
    return (
        frozenset(pk for earlier in telling for pk in earlier.source_collections),
        frozenset(pk for earlier in telling for pk in earlier.source_documents),
    )
