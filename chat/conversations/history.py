"""The earlier questions and answers of a conversation."""

from __future__ import annotations

from chat.answering.checking.citations import find_markers
from chat.conversations import rights
from chat.models import Answer
from retrieval.models import Document
from retrieval.types import Turn

# A follow-up refers to what was just said; older turns would cost a model's attention and name the wrong things.
REMEMBERED_TURNS = 3


def list_turns_before(answer: Answer) -> tuple[Turn, ...]:
    """The last answered questions of the answer's conversation, with their answers, oldest first.

    A refusal counts as an empty answer: its question still gives the subject. So does an answer that the asker may no
    longer read. If the question came with its own history, that is used instead.
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
    """The messages that a model got in that turn, if the same collection is searched and no document was deleted or
    read again since.
    """
    if not turn.dialogue or turn.collection_id != answer.collection_id:
        return ()
    documents = set(turn.source_documents)
    unchanged = Document.objects.filter(pk__in=documents, ingested_at__lt=turn.created_at).count()
    return tuple(turn.dialogue) if unchanged == len(documents) else ()


def _cited_places(answer: Answer) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The documents (ids) and collections (slugs) of the sources that the answer's text cites."""
    # A stopped answer was not checked, so it has markers and no citations.
    named = {cited.marker for cited in answer.citations.all()} or {each.number for each in find_markers(answer.text)}
    cited = [source["document"] for source in answer.sources if source["marker"] in named]
    documents = dict.fromkeys(document["id"] for document in cited)
    collections = dict.fromkeys(document["collection"] for document in cited if document.get("collection"))
    return tuple(documents), tuple(collections)


def fill_in_behind(answer: Answer) -> None:
    """Note the collections and documents that the answer may be based on: those it quotes, and those whose content it
    may repeat.

    A question that was rewritten from earlier answers, or sent to a model with them, may repeat their content. A
    suggested question may contain words of any document searched.
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
    """The collections and documents behind the earlier answers that this one may repeat."""
    if answer.history is not None:
        return frozenset(), frozenset()
    telling = [earlier for earlier in answer.list_earlier(REMEMBERED_TURNS) if not earlier.refused]
    return (
        frozenset(pk for earlier in telling for pk in earlier.source_collections),
        frozenset(pk for earlier in telling for pk in earlier.source_documents),
    )
