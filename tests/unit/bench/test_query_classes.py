from __future__ import annotations

import json
from collections import Counter

import pytest

from bench.classification.measures import (
    HELD_OUT,
    LANGUAGES,
    SHIPPED,
    SPLITS,
    ClassifiedQuestion,
    LabelledQuestion,
    accuracy,
    classify_all,
    confusion_matrix,
    groups,
    read_labelled_questions,
)
from evaluation.exceptions import UnreadableTestSet
from retrieval.search.classification import classify
from retrieval.types import Classification, QueryClass

ROW = {"question": "opening hours", "class": "default", "language": "english", "split": "tuning"}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "questions.jsonl"


def classified(actual, given, *, language="english", split="tuning"):
    return ClassifiedQuestion(
        LabelledQuestion("?", QueryClass(actual), language, split), Classification(QueryClass(given), "a rule")
    )


def test_the_shipped_questions_are_many_of_each_class_in_both_languages_and_halves():
    questions = read_labelled_questions(SHIPPED)
    assert len(questions) >= 300
    for split in SPLITS:
        assert sum(question.split == split for question in questions) >= 150
    numbers = Counter((question.language, question.query_class) for question in questions)
    assert min(numbers[language, query_class] for language in LANGUAGES for query_class in QueryClass) >= 25


@pytest.mark.parametrize("language", LANGUAGES)
def test_more_than_nine_in_ten_questions_that_no_rule_was_written_on_get_their_class(language):
    by_group = groups(classify_all(read_labelled_questions(SHIPPED), classify))
    assert accuracy(by_group[f"{HELD_OUT}, {language}"]).mean > 0.9


def test_questions_are_read_in_order_and_blank_lines_are_passed_over(file):
    other = ROW | {"question": "geen beeld", "class": "troubleshooting", "language": "dutch", "split": "held-out"}
    file.write_text("\ufeff" + json.dumps(ROW) + "\r\n\n" + json.dumps(other))
    assert read_labelled_questions(file) == (
        LabelledQuestion("opening hours", QueryClass.DEFAULT, "english", "tuning"),
        LabelledQuestion("geen beeld", QueryClass.TROUBLESHOOTING, "dutch", "held-out"),
    )


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ("{", "line 2, is not JSON"),
        ("[" * 100_000, "line 2, is not JSON"),
        ("[]", "line 2, is not a JSON object"),
        (json.dumps(ROW | {"question": " "}), 'line 2, has no "question"'),
        (json.dumps(ROW | {"question": 7}), 'line 2, has no "question"'),
        (json.dumps(ROW | {"question": "x", "class": "howto"}), 'line 2: the "class" is one of conceptual, code'),
        (json.dumps(ROW | {"question": "x", "class": None}), 'line 2: the "class" is one of'),
        (json.dumps(ROW | {"question": "x", "language": "german"}), 'line 2: the "language" is one of english, dutch'),
        (json.dumps(ROW | {"question": "x", "split": "test"}), 'line 2: the "split" is one of tuning, held-out'),
        (json.dumps(ROW | {"question": "Opening hours", "split": "held-out"}), "line 2: the question .* a second time"),
    ],
)
def test_a_line_that_is_not_a_labelled_question_is_named(file, second, complaint):
    file.write_text(json.dumps(ROW) + "\n" + second + "\n")
    with pytest.raises(UnreadableTestSet, match=complaint):
        read_labelled_questions(file)


def test_a_file_that_cannot_be_read_is_said_to_be_so(file):
    with pytest.raises(UnreadableTestSet, match="cannot be read: No such file"):
        read_labelled_questions(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UnreadableTestSet, match="not UTF-8"):
        read_labelled_questions(file)
    file.write_text("\n \n")
    with pytest.raises(UnreadableTestSet, match="holds no question"):
        read_labelled_questions(file)


def test_the_matrix_counts_labels_by_the_class_given():
    matrix = confusion_matrix(
        [classified("code", "code"), classified("code", "default"), classified("default", "default")]
    )
    # conceptual, code, troubleshooting, comparison, default
    assert matrix.row(QueryClass.CODE) == (0, 1, 0, 0, 1)
    assert matrix.row(QueryClass.DEFAULT) == (0, 0, 0, 0, 1)
    assert (matrix.recall(QueryClass.CODE), matrix.precision(QueryClass.CODE)) == (0.5, 1.0)
    assert (matrix.recall(QueryClass.DEFAULT), matrix.precision(QueryClass.DEFAULT)) == (1.0, 0.5)
    assert (matrix.recall(QueryClass.CONCEPTUAL), matrix.precision(QueryClass.CONCEPTUAL)) == (None, None)


def test_groups_are_halves_and_languages_within_them_without_the_empty_ones():
    one, other = classified("code", "code"), classified("code", "default", language="dutch", split="held-out")
    assert groups([one, other]) == {
        "all": (one, other),
        "tuning": (one,),
        "tuning, english": (one,),
        "held-out": (other,),
        "held-out, dutch": (other,),
    }


def test_accuracy_is_the_share_with_an_interval_around_it():
    interval = accuracy([classified("code", "code")] * 9 + [classified("code", "default")])
    assert interval.mean == pytest.approx(0.9)
    assert interval.low < 0.9 < interval.high <= 1
    with pytest.raises(ValueError, match="at least one"):
        accuracy([])
