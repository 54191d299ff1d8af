import json

import pytest

from bench.answers.graded import (
    AnswerKeyFile,
    AnswerReply,
    GradedQuestion,
    ask_graded_questions,
    grade_reply,
    read_graded_questions,
)
from evaluation.exceptions import UnreadableTestSet
from evaluation.expectations import AnswerExpectations

LEAVE = {
    "id": "a-1", "corpus": "hr", "question": "How long is it?", "kind": "fact", "must": ["12 weeks"], "max_chars": 80,
}  # fmt: skip


def written(folder, *rows):
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_line_says_what_is_asked_and_what_is_expected(tmp_path):
    (tmp_path / "hr").mkdir()
    (tmp_path / "hr" / "02 New Parent Leave.md").write_text('---\ntitle: "Parental leave"\n---\n# Leave é\n\n## More\n')
    key = "It is 12 weeks. (hr/02 New Parent Leave.md; hr/gone-file.pdf)"
    first, second, third = read_graded_questions(
        written(
            tmp_path,
            {**LEAVE, "must_not": ["ever"], "key": key},
            {**LEAVE, "id": "a-2", "after": "a-1", "collection": ""},
            {**LEAVE, "id": "a-3", "kind": "near_miss", "must": ["REFUSE"], "key": "Not there (at all)."},
        )
    )
    assert (first.collection, first.expected) == ("hr", AnswerExpectations(("12 weeks",), ("ever",), 80))
    known, gone = first.files
    for title in ("New Parent Leave", "02 New Parent Leave.md", "Parental Leave", "Leave É"):
        assert known.has_title(title), title
    assert not known.has_title("More")
    assert not known.has_title("New Parent Leave of absence")
    assert gone.has_title("The file that is gone")
    assert not gone.has_title("The file")
    assert (second.after, second.collection) == ("a-1", "")
    assert (third.expected, third.files) == (AnswerExpectations((), (), 80, refusal=True), ())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no questions"),
        ([{"must": ["12 weeks"]}], "line 1, has no 'id'"),
        ([{**LEAVE, "must": []}], 'line 1, says nothing that the answer "must" hold'),
        ([{**LEAVE, "must": "12"}], 'line 1: "must" is not a list'),
        ([LEAVE, LEAVE], 'line 2: the "id" .a-1. is there a second time'),
        ([{**LEAVE, "after": "a-9"}], "line 1: the question .a-9. of .after. is not above it"),
    ],
)
def test_bad_lines_are_told(tmp_path, rows, message):
    with pytest.raises(UnreadableTestSet, match=message):
        read_graded_questions(written(tmp_path, *rows))


def question(kind="fact", corpus="hr", **others):
    expected = others.pop("expected", AnswerExpectations(("12 weeks",), (), 20))
    return GradedQuestion("a-1", corpus, corpus, "How long?", kind, expected, **others)


def test_a_cited_key_file_is_worth_a_point_and_a_reply_that_failed_nothing():
    files = (AnswerKeyFile("hr/leave.md", frozenset({"parental leave"})),)
    assert grade_reply(question(files=files), AnswerReply("Some.", cited=("Parental leave",))).points == 1
    assert grade_reply(question(files=files), AnswerReply("Some.", cited=("Pay",))).points == 0
    assert grade_reply(question(), AnswerReply("12 weeks", error="503 Busy")).points == 0


def test_the_figures_of_a_run():
    refusal = AnswerExpectations(refusal=True)
    replies = {
        question(): AnswerReply("12 weeks", seconds=1.0),
        question("list", "it"): AnswerReply("12 weeks, as everybody knows here", seconds=3.0),
        question("list"): AnswerReply("No.", refused=True, seconds=2.0),
        question("list", "law"): AnswerReply("No.", refused=True, beside=("It is", "12 weeks long"), seconds=2.0),
        question("near_miss", expected=refusal): AnswerReply("No.", refused=True, seconds=2.0),
        question("near_miss", "it", expected=refusal): AnswerReply("Yes.", seconds=2.0),
        question("off_topic", expected=refusal): AnswerReply("", error="broken"),
    }
    told = []
    run = ask_graded_questions(list(replies), replies.__getitem__, lambda number, _graded: told.append(number))
    assert told == [1, 2, 3, 4, 5, 6, 7]
    assert (run.question_kinds, run.corpora) == (("fact", "list", "near_miss", "off_topic"), ("hr", "it", "law"))
    means = {kind: interval.mean for kind in run.question_kinds if (interval := run.compute_mean_points(kind=kind))}
    assert means == {"fact": 3.0, "list": 1.0, "near_miss": 1.5, "off_topic": 0.0}
    everything = run.compute_mean_points()
    assert (everything.mean, everything.low < everything.mean < everything.high) == (9 / 7, True)
    assert run.compute_mean_points(kind="fact", corpus="it") is None
    shares = {name: share.mean for name, share in run.compute_outcome_shares().items() if share is not None}
    assert shares == pytest.approx(
        {
            "zeros": 3 / 7,
            "near_misses_refused": 0.5,
            "off_topic_refused": 0.0,
            "wrongly_refused": 2 / 4,
            "on_page": 3 / 4,
            "too_long": 1 / 4,
            "failed": 1 / 7,
        }
    )
    assert run.compute_wait_percentiles().p50 == 2.0
