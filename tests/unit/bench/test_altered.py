from __future__ import annotations

import json

import pytest

from bench.groundedness.altered import Alteration, altered_statements, areas
from evaluation.exceptions import UnreadableTestSet

DOCUMENTS = {
    "a": "After long tests in the winter, the pump is built by Karin Jansen. It has a green paint, which is not new.",
    "b": "Since the second year of sales, the warranty is 24 months for a motor. Returns are free for all customers.",
    "c": "In the north of the country, the factory was led by Pieter Bakker. It stands near a river and a railway.",
    "d": "After many years of growth, the firm has been worth 350 million in shares. It is sold in three countries.",
}
QUERIES = [
    ("q1", "Who builds the pump?", "Karin Jansen", "a"),
    ("q2", "How many months is the warranty?", "24", "b"),
    ("q3", "Who led the factory?", "Pieter Bakker", "c"),
    ("q4", "What is the firm worth?", "350 million", "d"),
]


@pytest.fixture
def folder(tmp_path):
    corpus = [{"_id": key, "title": "", "text": text} for key, text in DOCUMENTS.items()]
    queries = [{"_id": key, "text": text, "answers": [answer]} for key, text, answer, _ in QUERIES]
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "qrels.tsv").write_text("".join(f"{query}\t{document}\t1\n" for query, _, _, document in QUERIES))
    return tmp_path


def test_true_statements_say_what_the_passage_says_in_another_order(folder):
    true = [each for each in altered_statements(folder, 10) if each.is_true and each.group == "sentence"]
    assert len(true) == 4
    assert "The pump is built by Karin Jansen, after long tests in the winter." in {each.text for each in true}
    for each in true:
        assert each.text not in each.passage
        assert set(each.text.lower().strip(".").replace(",", "").split()) <= set(
            each.passage.lower().replace(",", "").replace(".", "").split()
        )


def test_false_statements_differ_by_what_their_kind_says(folder):
    made = altered_statements(folder, 10)
    of = {kind: [each for each in made if each.alteration is kind] for kind in Alteration}
    # Each name can only become the other one, and so for numbers.
    assert "The pump is built by Pieter Bakker, after long tests in the winter." in {
        e.text for e in of[Alteration.NAME]
    }
    assert any("350 million months" in each.text for each in of[Alteration.NUMBER])
    assert any("pump is not built by Karin Jansen" in each.text for each in of[Alteration.NEGATION])
    assert "Karin Jansen: Who led the factory." in {each.text for each in of[Alteration.ANSWER]}
    assert all(each.text not in each.passage for each in made)
    assert not any(each.is_true for kind in Alteration for each in of[kind])


def test_the_same_set_gives_the_same_statements_and_no_more_than_asked_for(folder):
    assert altered_statements(folder, 10) == altered_statements(folder, 10)
    assert len({each.passage for each in altered_statements(folder, 1)}) == 1


def test_words_tell_what_was_altered(folder):
    found = areas(altered_statements(folder, 10))
    assert found[Alteration.NEGATION] == (1.0, 4)
    assert found[Alteration.NAME] == (1.0, 2)
    assert found[Alteration.NUMBER] == (1.0, 2)


def test_a_set_without_answers_is_refused(folder):
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": q, "text": t}) + "\n" for q, t, _, _ in QUERIES))
    with pytest.raises(UnreadableTestSet, match='no query with "answers"'):
        altered_statements(folder, 10)
