from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.answers.sets import QuestionKind, off_topic, read_beir_questions, read_question_file, spread
from bench.beir import read_test_set
from evaluation.exceptions import UnreadableTestSet


def write_set(folder: Path, queries: list[dict[str, Any]], unanswerable: str | None = None) -> Path:
    folder.mkdir()
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "Pay", "text": "Paid on the 25th."}\n')
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (folder / "qrels.tsv").write_text("".join(f"{query['_id']}\td1\t1\n" for query in queries))
    if unanswerable is not None:
        (folder / "unanswerable.jsonl").write_text(unanswerable)
    return folder


def write_file(folder: Path, content: object, collection: str = "pay") -> Path:
    (folder / collection).mkdir(exist_ok=True)
    path = folder / "questions.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


KNOWN = {"_id": "q1", "text": "When is pay paid?", "answers": ["the 25th"]}
ASKED = {"question": "When?", "answer": "the 25th", "collection": "pay", "language": "nl"}


def test_a_sets_questions_come_with_answers_and_kind(tmp_path: Path) -> None:
    unanswerable = '{"_id": "u1", "text": "Who is paid?", "title": "Pay"}\n\n'
    folder = write_set(tmp_path / "set", [KNOWN, {"_id": "q2", "text": "Without an answer"}], unanswerable)
    test_set, (known, adversarial) = read_beir_questions(folder)
    assert test_set.name == "set"
    assert (known.text, known.kind, known.answers) == ("When is pay paid?", QuestionKind.ANSWERABLE, ("the 25th",))
    assert (adversarial.text, adversarial.kind) == ("Who is paid?", QuestionKind.ADVERSARIAL)


def test_a_set_without_unanswerable_questions_has_none(tmp_path: Path) -> None:
    _, questions = read_beir_questions(write_set(tmp_path / "set", [KNOWN]))
    assert [question.kind for question in questions] == [QuestionKind.ANSWERABLE]


@pytest.mark.parametrize(
    ("queries", "unanswerable", "complaint"),
    [
        ([{"_id": "q1", "text": "When?"}], None, 'no question with "answers"'),
        ([KNOWN | {"answers": "the 25th"}], None, 'line 1: "answers" is not a list'),
        ([KNOWN], "[]\n", "unanswerable.jsonl, line 1, is not a JSON object"),
        ([KNOWN], '{"_id": "u"}\n', 'line 1, has no "text"'),
        ([KNOWN], "{\n", "line 1, is not JSON"),
    ],
)
def test_what_is_wrong_with_a_set_is_told(
    tmp_path: Path, queries: list[dict[str, Any]], unanswerable: str | None, complaint: str
) -> None:
    with pytest.raises(UnreadableTestSet, match=complaint):
        read_beir_questions(write_set(tmp_path / "set", queries, unanswerable))


def test_a_question_file_names_its_folders_and_kinds(tmp_path: Path) -> None:
    content = {
        "questions": [ASKED],
        "unanswerable": [{"question": "Who won?", "kind": "off_topic"}, {"question": "What colour?"}],
    }
    file = read_question_file(write_file(tmp_path, content))
    assert [question.kind for question in file.questions] == [
        QuestionKind.ANSWERABLE,
        QuestionKind.OFF_TOPIC,
        QuestionKind.ADVERSARIAL,
    ]
    assert file.questions[0].answers == ("the 25th",)
    (collection,) = file.collections
    assert (collection.slug, collection.folder, collection.language) == ("pay", tmp_path / "pay", "nl")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "is not JSON"),
        ([], "is not an object"),
        ({"questions": ["When?"]}, "list of objects"),
        ({"questions": []}, 'holds no "questions"'),
        ({"questions": [ASKED | {"answer": ""}]}, 'number 1 of questions, has no "answer"'),
        ({"questions": [ASKED], "unanswerable": [{}]}, 'number 1 of unanswerable, has no "question"'),
        ({"questions": [ASKED | {"collection": "gone"}]}, "There is no folder"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(tmp_path: Path, content: object, complaint: str) -> None:
    with pytest.raises(UnreadableTestSet, match=complaint):
        read_question_file(write_file(tmp_path, content))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTestSet, match="cannot be read"):
        read_question_file(tmp_path / "gone.json")


def test_off_topic_questions_come_from_all_sets_alike(tmp_path: Path) -> None:
    sets = [
        read_test_set(write_set(tmp_path / name, [{"_id": f"q{n}", "text": f"{name}{n}"} for n in range(10)]))
        for name in ("a", "b")
    ]
    assert [question.text for question in off_topic(sets, 4)] == ["a0", "a5", "b0", "b5"]
    assert len(off_topic(sets, 3)) == 3
    assert len(off_topic(sets, None)) == 20
    assert {question.kind for question in off_topic(sets, 4)} == {QuestionKind.OFF_TOPIC}
    assert off_topic([], 4) == ()


def test_a_selection_is_spread_over_the_whole() -> None:
    assert spread(range(10), 3) == [0, 3, 6]
    assert spread(range(3), 10) == [0, 1, 2]
    assert spread(range(3), None) == [0, 1, 2]
    assert spread([], 3) == []
