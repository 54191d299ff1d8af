"""Questions written by hand: searched from the moment they are saved, and kept when the document is read again."""

import pytest
from django.urls import reverse

from chat.pages.suggestions import list_suggestions
from retrieval.documents import ingestion
from retrieval.documents.reconciliation import find_inconsistencies
from retrieval.index.chunk_writer import replace_chunk_questions
from retrieval.models import Chunk, CollectionStatistics, Document, Lexeme
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.text import chunking
from retrieval.types import SearchMethod
from tests.support.completion_server import completion_server
from tests.support.libraries import remembered

pytestmark = pytest.mark.django_db(transaction=True)

HOLIDAYS = "# Holidays\n\nEvery employee has 25 days of paid holiday a year.\n"
ILLNESS = "\n# Illness\n\n" + "Call your manager before nine when you are ill, and send a note later on. " * 60
RARE = "How many sabbatical weeks may I accrue?"


@pytest.fixture
@remembered
def chunk(collection, ingest):
    ingest(collection, "parking.md", "# Parking\n\nThe car park has 40 places and one holiday cottage.")
    return ingest(collection, "holidays.md", HOLIDAYS).chunks.get()


def url_of(chunk):
    return reverse("admin:retrieval_chunk_change", args=[chunk.pk])


def found(question):
    return [
        hit.passage.source for hit in search(question, build_unrestricted_filters(), method=SearchMethod.LEXICAL).hits
    ]


def test_a_passage_is_found_by_its_new_question_and_not_by_a_removed_one(chunk):
    collection = chunk.collection
    version = CollectionStatistics.objects.get(pk=collection.pk).version
    assert found("sabbatical") == []
    replace_chunk_questions(chunk, [RARE])
    assert found("sabbatical") == ["holidays.md"]
    assert find_inconsistencies() == []
    assert CollectionStatistics.objects.get(pk=collection.pk).version == version + 1
    replace_chunk_questions(chunk, ["What about days off?"])
    assert found("sabbatical") == []
    assert not Lexeme.objects.filter(lexeme__startswith="sabbat").exists()
    assert find_inconsistencies() == []
    replace_chunk_questions(chunk, [])
    chunk.refresh_from_db()
    assert (chunk.canonical_questions, chunk.questions_edited) == ([], True)
    assert find_inconsistencies() == []


def test_they_are_kept_when_the_same_passage_is_read_again(chunk, collection, ingest):
    replace_chunk_questions(chunk, [RARE])
    document = ingest(collection, "holidays.md", HOLIDAYS + ILLNESS)
    assert document.chunks.count() > 1
    kept = Chunk.objects.get(pk=chunk.pk)
    assert (kept.canonical_questions, kept.questions_edited) == ([RARE], True)
    assert document.chunks.filter(questions_edited=False).count() == document.chunks.count() - 1
    assert found("sabbatical") == ["holidays.md"]
    assert find_inconsistencies() == []


def test_they_are_carried_over_when_passages_are_made_anew(chunk, collection, ingest, monkeypatch):
    replace_chunk_questions(chunk, [RARE])
    monkeypatch.setattr(chunking, "CHUNKER_VERSION", "another")
    anew = ingest(collection, "holidays.md", HOLIDAYS).chunks.get()
    assert anew.pk != chunk.pk
    assert (anew.canonical_questions, anew.questions_edited) == ([RARE], True)
    assert found("sabbatical") == ["holidays.md"]
    assert find_inconsistencies() == []


def test_the_generator_is_not_asked_for_passages_that_are_kept(collection, ingest, monkeypatch):
    asked = []

    class Counting:
        name = "counting"

        def generate(self, text, heading_path, language):
            asked.append(text)
            return ["Is it counted?"]

    monkeypatch.setattr(ingestion.backends, "get_question_generator", Counting)
    ingest(collection, "holidays.md", HOLIDAYS)
    asked.clear()
    document = ingest(collection, "holidays.md", HOLIDAYS + ILLNESS)
    assert len(asked) == document.chunks.count() - 1
    assert not any("holiday" in text for text in asked)


def test_they_are_suggested(chunk):
    replace_chunk_questions(chunk, [RARE, "What is the policy of it about?"])
    questions = [question for question, _collection in list_suggestions(None)]
    assert RARE in questions
    assert not any(question.startswith("What is") for question in questions)


def test_staff_edit_them_on_the_passage_page(admin, chunk):
    page = admin.get(url_of(chunk)).content.decode()
    assert 'name="canonical_questions"' in page
    assert "<textarea" in page
    body = {"canonical_questions": f"  {RARE} \n\nWhat <b>about</b> leave?\n{RARE}\n", "content": "changed"}
    assert admin.post(url_of(chunk), body).status_code == 302
    chunk.refresh_from_db()
    assert chunk.canonical_questions == [RARE, "What <b>about</b> leave?"]
    assert chunk.questions_edited
    assert chunk.content != "changed"
    assert found("sabbatical") == ["holidays.md"]
    assert "What &lt;b&gt;about&lt;/b&gt; leave?" in admin.get(url_of(chunk)).content.decode()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n".join(f"Question {n}?" for n in range(6)), "At most 5 questions"),
        ("x" * 201, "shorter than 200 characters"),
        ("a\x00b", "Null characters"),
    ],
)
def test_what_cannot_be_a_question_is_refused(admin, chunk, text, why):
    response = admin.post(url_of(chunk), {"canonical_questions": text})
    assert response.status_code == 200
    assert why in str(response.context["adminform"].form.errors)
    chunk.refresh_from_db()
    assert not chunk.questions_edited


def test_a_models_questions_are_searched_and_a_model_that_is_down_fails_no_document(
    chunk, collection, ingest, settings
):
    with completion_server() as server:
        settings.QUESTION_GENERATOR = {
            "BACKEND": "retrieval.documents.model_questions.ModelQuestions",
            "OPTIONS": {"base_url": server.url, "api_key": "", "model": "tiny"},
        }
        server.content = '{"questions": ["How much annual vacation is there?"]}'
        document = ingest(collection, "holidays.md", HOLIDAYS)
        assert document.chunks.get().canonical_questions == ["How much annual vacation is there?"]
        assert found("vacation") == ["holidays.md"]
        assert len(server.requests) == 1
        ingest(collection, "holidays.md", HOLIDAYS)
        assert len(server.requests) == 1
        server.status = 500
        document = ingest(
            collection, "policy.md", "The refund policy is a set of rules for the money that you get back."
        )
        assert document.status == Document.Status.READY
        assert document.chunks.get().canonical_questions == []
    assert find_inconsistencies() == []


def test_headings_that_ask_are_suggested(collection, ingest):
    ingest(collection, "faq.md", "# FAQ\n\n## 4.1 Do I need a separate vector database?\n\nNo, it is in PostgreSQL.\n")
    ingest(collection, "bill.md", "# Bill\n\n## WHEN DOES THE BILL ARRIVE?\n\nIt arrives within two weeks.\n")
    asked = [question for question, _collection in list_suggestions(None)]
    assert asked == ["Do I need a separate vector database?"]
