import json

import pytest

from bench.answers.sets import QuestionKind, choose_evenly, choose_off_topic_questions, read_beir_questions
from bench.beir import read_test_set
from evaluation.exceptions import UnreadableTestSet


def write_set(folder, queries, unanswerable=None):
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Pay", "text": "Paid on the 25th."}\n')
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (folder / "qrels.tsv").write_text("".join(f"{query['_id']}\td1\t1\n" for query in queries))
    if unanswerable is not None:
        (folder / "unanswerable.jsonl").write_text(unanswerable)
    return folder


KNOWN = {"_id": "q1", "text": "When is pay paid?", "answers": ["the 25th"]}


@pytest.mark.parametrize(
    ("queries", "unanswerable", "complaint"),
    [
        ([{"_id": "q1", "text": "When?"}], None, 'no question with "answers"'),
        ([KNOWN | {"answers": "the 25th"}], None, "line 1, cannot be used: 'the 25th' is not a list"),
        ([KNOWN], '{"_id": "u"}\n', "unanswerable.jsonl, line 1, has no 'text'"),
    ],
)
def test_what_is_wrong_with_a_set_is_told(tmp_path, queries, unanswerable, complaint):
    with pytest.raises(UnreadableTestSet, match=complaint):
        read_beir_questions(write_set(tmp_path / "set", queries, unanswerable))


def test_off_topic_questions_come_from_all_sets_alike(tmp_path):
    sets = [
        read_test_set(write_set(tmp_path / name, [{"_id": f"q{n}", "text": f"{name}{n}"} for n in range(10)]))
        for name in ("a", "b")
    ]
    assert [question.text for question in choose_off_topic_questions(sets, 4)] == ["a0", "a5", "b0", "b5"]
    assert len(choose_off_topic_questions(sets, 3)) == 3
    assert len(choose_off_topic_questions(sets, None)) == 20
    assert {question.kind for question in choose_off_topic_questions(sets, 4)} == {QuestionKind.OFF_TOPIC}
    assert choose_off_topic_questions([], 4) == ()


def test_a_selection_is_spread_over_the_whole():
    assert choose_evenly(range(10), 3) == [0, 3, 6]
    assert choose_evenly(range(3), 10) == [0, 1, 2]
    assert choose_evenly(range(3), None) == [0, 1, 2]
    assert choose_evenly([], 3) == []
