"""Evaluation sets: how they are made, and how their passages are found again."""

import pytest

from chat.models import Answer
from evaluation.models import EvaluationQuestion, ExpectedPassage
from evaluation.models.evaluation_set import build_runnable_condition
from evaluation.sets import building
from evaluation.sets.resolution import find_expected_chunks, hash_questions, list_measured_questions
from retrieval.models import Chunk, Collection
from tests.support.evaluation_sets import DOCUMENTS, set_of
from tests.support.judged_answers import completed_answer

pytestmark = pytest.mark.django_db(transaction=True)


def resolved(collection, question):
    """Return the texts of the chunks that match each expected passage."""
    passages = list(question.expected_passages.all())
    found = find_expected_chunks(collection.pk, passages)
    return [
        sorted(Chunk.objects.filter(pk__in=found[one.pk].chunk_ids).values_list("content", flat=True))
        for one in passages
    ]


def test_a_passage_is_found_after_its_document_was_read_again_and_cut_otherwise(library, ingest):
    question = set_of(library, questions={"How heavy?": "pump.md"}).questions.get()
    assert len(resolved(library, question)[0]) == 1
    ingest(library, "pump.md", "# News\n\nA section before it.\n\n" + DOCUMENTS["pump.md"].replace(" and ", "\nand "))
    assert not Chunk.objects.filter(content_hash=question.expected_passages.get().content_hash).exists()
    (after,) = resolved(library, question)
    assert len(after) == 1
    assert "3450 grams" in after[0]


def test_a_document_that_was_deleted_and_added_again_is_found(library, ingest):
    question = set_of(library, questions={"How heavy?": "pump.md"}).questions.get()
    library.documents.get(source="pump.md").delete()
    (gone,) = find_expected_chunks(library.pk, list(question.expected_passages.all())).values()
    assert (gone.is_resolved, gone.document_id) == (False, None)
    ingest(library, "pump.md", DOCUMENTS["pump.md"])
    assert len(resolved(library, question)[0]) == 1


def test_words_that_the_document_holds_no_more_are_gone(library, ingest):
    question = set_of(library, questions={"How heavy?": "pump.md"}).questions.get()
    ingest(library, "pump.md", DOCUMENTS["pump.md"].replace("3450", "9999"))
    (gone,) = find_expected_chunks(library.pk, list(question.expected_passages.all())).values()
    assert not gone.is_resolved
    assert gone.document_id is not None
    # In another collection there is no such document.
    other = Collection.objects.create(slug="other", name="Other")
    (elsewhere,) = find_expected_chunks(other.pk, list(question.expected_passages.all())).values()
    assert (elsewhere.is_resolved, elsewhere.document_id) == (False, None)


def test_a_few_words_stand_for_the_passage_they_are_in_and_no_words_for_the_document(library):
    question = set_of(library, questions={"How heavy?": "pump.md"}).questions.get()
    question.expected_passages.all().delete()
    ExpectedPassage.objects.create(question=question, source="pump.md", quote="weighs  3450\ngrams")
    ExpectedPassage.objects.create(question=question, source="valve.md")
    words, document = find_expected_chunks(library.pk, list(question.expected_passages.all())).values()
    assert len(words.chunk_ids) == 1
    assert (document.whole, document.is_resolved) == (True, True)


def test_drafts_are_not_measured_and_the_fingerprint_follows_what_is(library):
    evaluation_set = set_of(library)
    before = hash_questions(list_measured_questions(evaluation_set))
    draft = EvaluationQuestion.objects.create(evaluation_set=evaluation_set, text="What now?")
    not_answered_by = ExpectedPassage.objects.create(question=draft, source="pump.md", grade=0)
    assert draft not in list_measured_questions(evaluation_set)
    assert hash_questions(list_measured_questions(evaluation_set)) == before
    not_answered_by.grade = 1
    not_answered_by.save()
    assert draft in list_measured_questions(evaluation_set)
    assert hash_questions(list_measured_questions(evaluation_set)) != before


def test_an_answer_becomes_one_draft_however_often_it_is_asked_for(library):
    answer = completed_answer(question="And the other?", completed_question="How heavy is the other pump?")
    evaluation_set = building.get_complaint_set(library)
    question, is_new = building.get_or_create_question(answer, evaluation_set)
    assert (question.text, is_new) == ("How heavy is the other pump?", True)
    assert building.get_or_create_question(answer, evaluation_set) == (question, False)
    assert list(evaluation_set.questions.exclude(build_runnable_condition())) == [question]
    building.add_expected_passage(question, Chunk.objects.get(document__source="pump.md"), grade=2)
    building.add_expected_passage(question, Chunk.objects.get(document__source="pump.md"), grade=3)
    assert question.expected_passages.get().grade == 3
    Answer.objects.all().delete()
    question.refresh_from_db()
    assert question.answer is None


def test_words_of_another_collection_do_not_come_into_the_set(library):
    other = Collection.objects.create(slug="vault", name="Vault")
    answer = completed_answer(
        question="Whats in it?", completed_question="What is in the vault?", source_collections=[library.pk, other.pk]
    )
    question, _ = building.get_or_create_question(answer, building.get_complaint_set(library))
    assert question.text == "Whats in it?"


def test_collections_whose_names_begin_alike_take_their_complaints_apart(library):
    first, second = (
        Collection.objects.create(
            slug=f"employee-handbook-netherlands-amsterdam-{year}", name=year, text_search_configuration="english"
        )
        for year in ("2023", "2024")
    )
    assert building.get_complaint_set(first).collection == first
    assert building.get_complaint_set(second).collection == second
    assert building.get_complaint_set(second) == building.get_complaint_set(second)


def test_the_collection_of_an_answer_is_what_it_was_asked_of(library):
    other = Collection.objects.create(slug="other", name="Other")
    answer = completed_answer(contents=())
    answer.sources = [{"document": {"id": library.documents.get(source="pump.md").pk}}] * 2
    assert building.find_collection_of_answer(answer) == library
    answer.collection = other
    assert building.find_collection_of_answer(answer) == other
