"""A saved citation has one form: a dataclass, whose JSON is what events, rows and the API have."""

from dataclasses import fields

from chat.api.serializers import CitationSerializer
from chat.models import Answer, Citation
from chat.payload_types import CitationPayload, CitedDocumentPayload
from chat.streaming.payloads import build_completed_payload, read_citation
from chat.types import CitedDocument, CitedWords, SavedCitation, VerifiedCitation
from core.dataclass_json import from_json, to_json


def names(kind):
    return {each.name for each in fields(kind)}


def test_the_declared_json_is_that_of_the_dataclass():
    assert set(CitationPayload.__annotations__) == names(SavedCitation) == set(CitationSerializer().fields)
    assert names(CitedDocument) == set(CitedDocumentPayload.__annotations__) - {"media_type"}


def test_a_row_has_the_words_of_a_checked_citation():
    assert names(CitedWords) <= {field.name for field in Citation._meta.fields}
    assert names(CitedWords) == names(VerifiedCitation) - {"passage"}


def test_the_event_has_the_json_of_the_row():
    answer = Answer(
        sources=[{"document": {"id": 4, "url": "https://example.org/", "collection": "c"}, "collection": "C"}]
    )
    row = Citation(
        answer=answer,
        marker=1,
        marker_start=5,
        marker_end=8,
        document_id=4,
        document_title="T",
        quote="q",
        start=0,
        end=1,
    )
    saved = read_citation(answer, row)
    assert build_completed_payload(answer, [row])["citations"] == [to_json(saved)]
    assert from_json(SavedCitation, to_json(saved)) == saved
    assert (saved.collection, saved.document, saved.page_unit) == (
        "C",
        CitedDocument(4, "T", "https://example.org/", "c"),
        "page",
    )
