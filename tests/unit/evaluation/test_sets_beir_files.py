"""Queries and judgements from files; errors name file and line."""

import pytest

from evaluation.exceptions import UnreadableTestSet
from evaluation.expectations import AnswerExpectations
from evaluation.sets.beir_files import read_questions

QUERIES = b'{"_id": "q1", "text": "How heavy is\\n the pump?"}\n\n{"_id": 2, "text": "Who?", "answer": "Nobody."}\n'
QRELS = b"query-id\tcorpus-id\tscore\nq1\tpump.md\t2\n2\thours.md\t1\nq1\tvalve.md\t0\nq9\tvalve.md\t1\n"


def test_questions_with_what_was_judged():
    first, second = read_questions(QUERIES, QRELS)
    assert (first.id, first.text) == ("q1", "How heavy is the pump?")
    assert [(one.source, one.grade) for one in first.judged] == [("pump.md", 2), ("valve.md", 0)]
    assert first.judged[0].where == "qrels.tsv, line 2"
    assert (second.id, second.expected_answer) == ("2", "Nobody.")


def test_a_query_without_a_relevant_document_is_left_out():
    (only,) = read_questions(QUERIES, b"q1\tpump.md\t1\n2\tpump.md\t0\n")
    assert only.id == "q1"


@pytest.mark.parametrize(
    ("queries", "qrels", "message"),
    [
        (b'{"_id": "q1"', QRELS, "queries.jsonl, line 1, is not JSON"),
        (QUERIES + b"[]", QRELS, "queries.jsonl, line 4, is not a JSON object"),
        (QUERIES + b'{"text": "x"}', QRELS, 'line 4, has no "_id"'),
        (QUERIES + b'{"_id": "q1", "text": "x"}', QRELS, "line 4: the \"_id\" 'q1' is there a second time"),
        (QUERIES + b'{"_id": "q3", "text": " "}', QRELS, 'line 4, has no "text"'),
        (QUERIES + b'{"_id": "q3", "text": "x", "answer": 3}', QRELS, 'line 4: the "answer" is not a string'),
        (b"\xff\xfe", QRELS, "queries.jsonl is not UTF-8 text"),
        (QUERIES, QRELS + b"q1 pump.md 1", "qrels.tsv, line 6, is not a judgement"),
        (QUERIES, QRELS + b"q1\tx.md\tone", "qrels.tsv, line 6, is not a judgement"),
        (QUERIES, QRELS + b"q1\tx.md\t--5", "qrels.tsv, line 6, is not a judgement"),
        (QUERIES, QRELS + b"q1\tx.md\t" + b"9" * 5000, "qrels.tsv, line 6, is not a judgement"),
        (QUERIES, QRELS + b"q1\tpump.md\t2", "qrels.tsv, line 6, judges 'pump.md' for the query 'q1' a second time"),
        (QUERIES, QRELS + b"q1\tx.md\t1001", "line 6: a grade is at most 1000"),
        (QUERIES, b"q7\tpump.md\t1", "judges no document relevant to any query"),
    ],
)
def test_bad_files_are_told_by_line(queries, qrels, message):
    with pytest.raises(UnreadableTestSet) as caught:
        read_questions(queries, qrels)
    assert message in str(caught.value)


def test_a_set_without_judgements_and_expectations_is_refused():
    with pytest.raises(UnreadableTestSet, match="There are no judgements"):
        read_questions(b'{"_id": "q1", "text": "How heavy is the pump?"}')


def test_queries_that_say_what_is_expected_need_no_judgements():
    refusal = b'{"_id": "q3", "text": "Who won?", "expects_refusal": true}\n'
    answered, refused = read_questions(QUERIES + refusal)
    assert (answered.text, answered.expected_answer, answered.expected.refusal) == ("Who?", "Nobody.", False)
    assert (refused.text, refused.expected_answer, refused.expected.refusal) == ("Who won?", "", True)
    # If there are judgements, a query of another split is left out, whatever its answer; a refusal needs no judgement.
    found = read_questions(QUERIES + refusal, b"q1\tpump.md\t1\n")
    assert [one.id for one in found] == ["q1", "q3"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (b'{"_id": "q3", "text": "x", "expects_refusal": "yes"}', 'line 4: "expects_refusal" is neither true nor'),
        (
            b'{"_id": "q3", "text": "x", "expects_refusal": true, "answer": "y"}',
            "line 4, expects an answer and a refusal",
        ),
        (b'{"_id": "q3", "text": "x", "expects_refusal": true, "must": ["y"]}', "line 4, expects an answer and a ref"),
        (b'{"_id": "q3", "text": "x", "expects_refusal": true}', "qrels.tsv, line 1, judges a document relevant to"),
    ],
)
def test_a_refusal_is_expected_or_it_is_not(query, message):
    with pytest.raises(UnreadableTestSet, match=message):
        read_questions(QUERIES + query, b"q3\tpump.md\t1\n")


def test_a_query_says_what_its_answer_must_hold():
    query = b'{"_id": "q3", "text": "When?", "must": [" 9\\n am|nine ", ""], "must_not": ["never"], "max_chars": 80}'
    *_, asked = read_questions(QUERIES + query)
    assert asked.expected == AnswerExpectations(("9 am|nine",), ("never",), 80)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ('"must": "nine"', '"must" is not a list of strings'),
        ('"must_not": [9]', '"must_not" is not a list of strings'),
        ('"max_chars": 0', '"max_chars" is not a whole number'),
        ('"max_chars": true', '"max_chars" is not a whole number'),
        ('"max_chars": "80"', '"max_chars" is not a whole number'),
    ],
)
def test_bad_expectations_are_told_by_line(expected, message):
    with pytest.raises(UnreadableTestSet, match=f"queries.jsonl, line 4: {message}"):
        read_questions(QUERIES + f'{{"_id": "q3", "text": "x", {expected}}}'.encode())
