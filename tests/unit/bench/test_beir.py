import json
from pathlib import Path

import pytest

from bench.beir import read_test_set
from evaluation.exceptions import UnreadableTestSet

CORPUS = [
    {"_id": "d1", "title": "Holidays", "text": "25 days a year."},
    {"_id": "d2", "title": "", "text": "The car park closes at eight."},
    {"_id": "d3", "text": "Salaries are paid on the 25th."},
]
QUERIES = [
    {"_id": "q2", "text": "When does the car park close?", "answers": ["eight"]},
    {"_id": "q1", "text": "How many days off?"},
    {"_id": "q3", "text": "Nobody judged this."},
]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td3\t0\nq2\td2\t1\n"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "tiny"
    path.mkdir()
    write(path / "corpus.jsonl", CORPUS)
    write(path / "queries.jsonl", QUERIES)
    (path / "qrels.tsv").write_text(QRELS)
    return path


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_set_is_read_in_the_order_of_its_files(folder):
    test_set = read_test_set(folder)
    assert test_set.name == "tiny"
    assert [(document.id, document.title, document.text) for document in test_set.documents] == [
        ("d1", "Holidays", "25 days a year."),
        ("d2", "", "The car park closes at eight."),
        ("d3", "", "Salaries are paid on the 25th."),
    ]
    assert [(query.id, dict(query.grades)) for query in test_set.queries] == [
        ("q2", {"d2": 1}),
        ("q1", {"d1": 2, "d3": 0}),
    ]
    assert test_set.unknown_documents == 0


def test_judgements_can_be_named_by_path_or_within_the_folder(folder, tmp_path, monkeypatch):
    (tmp_path / "mine.tsv").write_text("q1\td2\t1\n")
    (folder / "split.tsv").write_text("q2\td1\t1\n")
    monkeypatch.chdir(tmp_path)
    assert [dict(query.grades) for query in read_test_set(folder, Path("mine.tsv")).queries] == [{"d2": 1}]
    assert [query.id for query in read_test_set(folder, Path("split.tsv")).queries] == ["q2"]


def test_files_of_other_forms_are_read(folder):
    write(folder / "corpus.jsonl", [{"_id": 7, "title": "a\ud800b", "text": "x\x00y"}])
    write(folder / "queries.jsonl", [{"_id": 1, "text": "which number?"}])
    (folder / "qrels.tsv").write_bytes(b"\xef\xbb\xbf1\t7\t1\r\n\r\n1\tgone\t1\r\nelsewhere\t7\t1\n")
    test_set = read_test_set(folder)
    assert [(document.id, document.title, document.text) for document in test_set.documents] == [("7", "a?b", "x y")]
    assert [(query.id, dict(query.grades)) for query in test_set.queries] == [("1", {"7": 1, "gone": 1})]
    assert test_set.unknown_documents == 1


def test_the_language_is_what_the_description_says(folder):
    assert read_test_set(folder).language == ""
    (folder / "META.json").write_text('{"language": "nl"}')
    assert read_test_set(folder).language == "nl"


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(UnreadableTestSet, match=name):
        read_test_set(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", '{"_id": "d1", "text": "a"}\n{oops\n', r"corpus\.jsonl, line 2, is not JSON"),
        ("corpus.jsonl", '{"_id": "d1"}\n', r"line 1, has no 'text'"),
        ("corpus.jsonl", '{"_id": "d1", "text": 3}\n', r"line 1, cannot be used"),
        ("corpus.jsonl", "\n", r"contains no document"),
        ("qrels.tsv", "q1\td1\t1\nq1\td1\t2\n", r"line 2, contradicts"),
        ("qrels.tsv", "other\td1\t1\n", r"judges no document relevant"),
        ("META.json", "{", r"META\.json, cannot be used"),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(folder, name, content, message):
    (folder / name).write_text(content)
    with pytest.raises(UnreadableTestSet, match=message):
        read_test_set(folder)
