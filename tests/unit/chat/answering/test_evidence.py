"""The one decision on refusal, and the place of a passage that is nearest to a question."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.answering.evidence import estimate_evidence, find_nearest_quotable_unit, find_unknown_names
from retrieval.exceptions import EmbeddingFailed
from retrieval.index import embedder_choice
from retrieval.index.closeness import Calibration
from retrieval.search.trace import RetrieverTrace, StageStatus
from retrieval.types import Candidate, Retriever, RetrieverScore
from tests.support.contexts import source
from tests.support.traces import example_trace

SCALE = Calibration(unrelated=0.2, answering=0.6, unrelated_texts=0.1, across_languages=True)


def trace(found):
    """Return a search that found these passages: by chunk id the cosine and the share of the question's words."""
    candidates = tuple(
        Candidate(
            pk,
            1.0,
            {} if cosine is None else {Retriever.VECTOR: RetrieverScore(rank=1, score=cosine)},
            word_share=share,
        )
        for pk, (cosine, share) in found.items()
    )
    return example_trace(question="weight of the pump", query="weight of the pump", candidates=candidates)


def weighed(cosine, share):
    return estimate_evidence(trace({1: (cosine, share)}), [source("The pump is green.")], SCALE)


def test_a_near_passage_with_the_questions_words_is_answerable_and_a_far_one_is_hopeless():
    assert weighed(0.6, 1.0).is_answerable
    far = weighed(0.1, 0.0)
    assert far.is_hopeless
    assert not far.is_answerable


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1))
def test_nearer_passages_and_more_words_never_lower_the_confidence(first, second, some, other):
    low = weighed(min(first, second), min(some, other))
    assert 0 <= low.probability <= weighed(max(first, second), max(some, other)).probability <= 1


def test_the_best_of_the_sources_counts_on_each_number():
    both = [source("One.", marker=1), source("Two.", marker=2)]
    evidence = estimate_evidence(trace({1: (0.6, 0.1), 2: (0.2, 0.9)}), both, SCALE)
    assert evidence.features == pytest.approx({"closeness": 1.0, "coverage": 0.9})
    assert evidence.closeness == pytest.approx({1: 1.0, 2: 0.0})


def test_each_source_is_near_by_its_own_numbers():
    both = [source("One.", marker=1), source("Two.", marker=2)]
    evidence = estimate_evidence(trace({1: (0.3, 0.0), 2: (0.2, 0.9)}), both, SCALE)
    assert (evidence.alone, evidence.near) == (frozenset(), frozenset({2}))


@pytest.mark.parametrize(("cosine", "share", "is_near"), [(0.6, 0.5, True), (0.45, 0.3, True), (0.2, 0.0, False)])
def test_passages_are_worth_showing_that_come_close(cosine, share, is_near):
    assert weighed(cosine, share).is_near_question == is_near


def test_by_words_alone_every_passage_is_worth_showing():
    assert estimate_evidence(trace({1: (None, 0.0)}), [source("The pump.")], None).is_near_question
    assert not estimate_evidence(trace({}), [], SCALE).is_near_question


def test_a_passage_in_another_language_does_not_answer_before_one_as_close_in_the_questions_own():
    asked = replace(trace({1: (0.32, 0.0), 2: (0.45, 0.0)}), query="When is the clinic open for you?")
    dutch = source("De polikliniek is op maandag open en het netwerk is voor iedereen.", marker=1)
    english = source("The clinic is open and the network is for all of you.", marker=2)
    assert estimate_evidence(asked, [dutch], SCALE).alone == {1}
    evidence = estimate_evidence(asked, [dutch, english], SCALE)
    assert not evidence.is_answerable
    assert not evidence.alone


def test_rows_of_a_table_have_the_language_of_the_text_around_them():
    rows = source("De bezoekuren zijn voor iedereen.\n\n| C4 | 10.00 – 20.00 |")
    rows = replace(rows, block=replace(rows.block, best=replace(rows.block.best, content="| C4 | 10.00 – 20.00 |")))
    asked = replace(trace({1: (0.36, 0.0)}), query="When is the visit for you?")
    assert estimate_evidence(asked, [rows], SCALE).is_answerable


def test_of_documents_in_another_language_only_unmistakable_names_are_missed():
    unknown = RetrieverTrace(Retriever.LEXICAL, StageStatus.OK, unknown_words=("easter", "wifi"))
    asked = replace(trace({1: (0.6, 0.0)}), query="Is there WiFi in the clinic at Easter?", retrievers=(unknown,))
    dutch = source("De polikliniek is op maandag open en het netwerk is voor iedereen.", marker=1)
    english = source("The clinic is open on Tuesday and the network is for all of you.", marker=2)
    assert find_unknown_names(asked, [dutch]) == ["WiFi"]
    assert find_unknown_names(asked, [dutch, english]) == ["WiFi", "Easter"]


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("Is the clinic open on Monday in March?", ("monday", "march")),
        ("Is het museum op Zaterdag open in Mei?", ("zaterdag", "mei")),
        ("What do I do if they say I'Ve to clean it, and You'Ll help?", ("ve", "ll", "you")),
        ("Hi Peter, how is the pump cleaned?", ("peter",)),
        ("I met Anna in Ghent. How is the pump cleaned?", ("anna", "ghent")),
        ("According to Peter: when is the pump cleaned?", ("peter",)),
        ("How is the pump cleaned, Peter?", ("peter",)),
    ],
)
def test_days_contractions_and_names_in_passing_are_no_unknown_names(question, unknown):
    retriever = RetrieverTrace(Retriever.LEXICAL, StageStatus.OK, unknown_words=unknown)
    assert find_unknown_names(replace(trace({1: (0.6, 0.4)}), query=question, retrievers=(retriever,)), []) == []


@pytest.mark.parametrize("question", ["When did Anna visit the clinic?", "How is it, and who is Anna there?"])
def test_names_that_are_asked_for_count(question):
    retriever = RetrieverTrace(Retriever.LEXICAL, StageStatus.OK, unknown_words=("anna",))
    assert find_unknown_names(replace(trace({1: (0.6, 0.4)}), query=question, retrievers=(retriever,)), []) == ["Anna"]


@pytest.mark.parametrize(
    ("question", "unknown", "names"),
    [
        ("How do I export it to MongoDB?", ("mongodb", "mongo", "db"), ["MongoDB"]),
        ("Does Windows run it?", ("windows",), ["Windows"]),
        # Ordinary words: the first of a sentence, and what has no capital.
        ("Thanks. Hello, how heavy is it?", ("Thanks", "hello"), []),
        ("how do I reimburse this?", ("reimburse",), []),
        ("What must I do about it?", ("i",), []),
        # German, whose nouns all have one.
        ("Wie beantrage ich Urlaub?", ("urlaub",), []),
    ],
)
def test_a_name_that_no_document_has_counts_against_an_answer(question, unknown, names):
    retriever = RetrieverTrace(Retriever.LEXICAL, StageStatus.OK, unknown_words=unknown)
    found = replace(trace({1: (0.6, 0.4)}), query=question)
    asked = replace(found, retrievers=(retriever,))
    assert find_unknown_names(asked, []) == names
    known, lacking = (estimate_evidence(each, [source("The pump is green.")], SCALE) for each in (found, asked))
    assert known.is_answerable
    assert lacking.is_answerable == (not names)


@pytest.mark.parametrize(("cosine", "calibration"), [(None, SCALE), (0.6, None)])
def test_without_vectors_or_a_calibration_words_alone_decide(cosine, calibration):
    evidence = estimate_evidence(trace({1: (cosine, 1.0)}), [source("The pump.")], calibration)
    assert evidence.by_words
    assert evidence.is_answerable
    assert "closeness" not in evidence.features
    nothing = estimate_evidence(trace({1: (cosine, 0.0)}), [source("The pump.")], calibration)
    assert not nothing.is_answerable
    assert not nothing.is_hopeless


def test_where_keyword_search_did_not_answer_the_words_of_the_passage_are_compared():
    assert weighed(0.6, None).features["coverage"] == pytest.approx(0.5)


def test_a_passage_in_another_language_needs_no_common_words():
    dutch = source("De bezoekuren van de afdeling zijn van twee tot drie uur in de middag.")
    asked = replace(trace({1: (0.44, 0.0)}), query="Wat zijn de tijden van het bezoek aan de kinderen?")
    assert not estimate_evidence(asked, [dutch], SCALE).is_answerable
    english = replace(asked, query="When may I visit the ward, and what are the hours?")
    assert estimate_evidence(english, [dutch], SCALE).is_answerable
    assert not estimate_evidence(replace(trace({1: (0.28, 0.0)}), query=english.query), [dutch], SCALE).is_answerable


def test_sources_that_answer_by_their_own_numbers_are_named():
    both = [source("One.", marker=1), source("Two.", marker=2), source("Three.", marker=3)]
    evidence = estimate_evidence(trace({1: (0.2, 0.4), 2: (0.5, 0.8), 3: (0.3, 1.0)}), both, SCALE)
    assert evidence.is_answerable
    assert evidence.alone == {2, 3}


def test_no_sources_no_confidence():
    assert estimate_evidence(trace({}), [], SCALE).probability == 0.0


def nearest(question, found):
    unit = find_nearest_quotable_unit(question, found)
    return unit.text if unit is not None else ""


def test_the_unit_with_most_of_the_questions_words_is_nearest():
    text = "The pump is green.\n\nThe pump weighs four kilos. It is sold in Utrecht.\n"
    assert nearest("Where is the pump sold?", source(text)) == "It is sold in Utrecht."
    assert nearest("How much does the pump weigh?", source(text)) == "The pump weighs four kilos."


def test_of_units_that_hold_the_same_words_the_one_with_most_of_their_letters_is_taken():
    text = "# Pump\n\nThe pump is green. The pump weighs four kilos. The pump is sold in Utrecht.\n"
    assert nearest("What is the weight of the pump?", source(text)) == "The pump weighs four kilos."


def test_of_units_that_hold_no_word_the_nearest_in_meaning_is_taken():
    assert nearest("Hoe zwaar is hij?", source("It is green. It weighs four kilos.")) == "It weighs four kilos."


def test_without_the_embedder_the_first_of_them_is_taken_and_the_log_says_so(monkeypatch, caplog):
    def fail(texts):
        raise EmbeddingFailed("down")

    monkeypatch.setattr(embedder_choice.get_embedder(), "embed_documents", fail)
    assert nearest("Hoe zwaar is hij?", source("It is green. It weighs four kilos.")) == "It is green."
    assert "does not answer" in caplog.text


def test_only_the_best_passage_of_a_source_is_looked_at():
    text = "The pump weighs 3450 g.\n\nThe pump is green.\n"
    assert nearest("What does the pump weigh?", source(text, passage=(25, 43))) == "The pump is green."


def test_a_passage_without_words_has_no_nearest_place():
    assert find_nearest_quotable_unit("pump", source("---")) is None


def test_half_of_the_words_answer_where_there_are_no_vectors():
    assert estimate_evidence(trace({1: (None, 0.5)}), [source("The pump.")], None).is_answerable
    assert not estimate_evidence(trace({1: (None, 0.4)}), [source("The pump.")], None).is_answerable
