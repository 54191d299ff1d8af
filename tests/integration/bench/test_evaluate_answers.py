"""Measuring whole answers, on a small set with predictable figures."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from bench.answers import runs
from retrieval.exceptions import EmbeddingFailed
from retrieval.index.active_embedder import clear_query_vector_cache
from retrieval.index.embedders.onnx import OnnxMiniLM

pytestmark = pytest.mark.django_db(transaction=True)

CORPUS = {
    "holidays": ("Holidays", "Every employee has 25 days of paid holiday a year. Unused days expire in March."),
    "parking": ("Parking", "The car park behind the building closes at eight in the evening."),
    "pay": ("Pay", "Salaries are transferred to the bank on the 28th of each month."),
}
# The last question's answer is not in the corpus: it is answered, and its citation lacks the answer.
QUERIES = {
    "q1": ("How many days of paid holiday does an employee have?", "holidays", ["25 days"]),
    "q2": ("When does the car park behind the building close?", "parking", ["at eight in the evening"]),
    "q3": ("When do unused days of holiday expire?", "pay", ["in April"]),
}
FOREIGN = {
    "f1": ("Which chemist isolated pure oxygen first?", "pay", []),
    "f2": ("Recipe for a sourdough starter with rye flour", "pay", []),
}


def write_set(folder, queries=QUERIES, unanswerable=()):
    folder.mkdir(parents=True)
    write_lines(
        folder / "corpus.jsonl", [{"_id": pk, "title": title, "text": text} for pk, (title, text) in CORPUS.items()]
    )
    write_lines(
        folder / "queries.jsonl",
        [{"_id": pk, "text": text, "answers": answers} for pk, (text, _, answers) in queries.items()],
    )
    (folder / "qrels.tsv").write_text("".join(f"{pk}\t{document}\t1\n" for pk, (_, document, _) in queries.items()))
    if unanswerable:
        write_lines(folder / "unanswerable.jsonl", [{"_id": text, "text": text} for text in unanswerable])
    return folder


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def evaluate(*arguments, **options):
    out = io.StringIO()
    call_command("evaluate_answers", *map(str, arguments), stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def evaluate_json(*arguments):
    return json.loads(evaluate(*arguments, "--json"))["sets"]


def test_the_figures_are_those_of_the_answers(tmp_path):
    folder = write_set(tmp_path / "staff", unanswerable=("Who built the car park behind the building?",))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- answers -->\nold\n<!-- /answers -->\nafter\n")
    (one,) = evaluate_json(folder, "--off-topic", write_set(tmp_path / "foreign", FOREIGN), "--write", page)
    lines = page.read_text().splitlines()
    assert lines[:3] == ["before", "<!-- answers -->", "|  | staff |"]
    assert "| answerable questions | 3 |" in lines
    assert one["name"] == "staff"
    assert one["generators"] == ["extractive"]
    assert one["questions"] == {"answerable": 3, "adversarial": 1, "off_topic": 2}
    assert one["answered"]["mean"] == 1.0
    # "in April" is in no source; the other two answers are in theirs, and first.
    assert one["answer_in_sources"]["mean"] == pytest.approx(2 / 3, abs=1e-4)
    assert one["citation_recall"]["mean"] == pytest.approx(2 / 3, abs=1e-4)
    assert 0 < one["citation_precision"]["mean"] <= 2 / 3 + 1e-4
    assert one["refusal_recall_off_topic"]["mean"] == 1.0
    assert one["refusal_precision_off_topic"]["mean"] == 1.0
    for name in ("answered", "citation_precision", "refusal_recall_adversarial"):
        assert set(one[name]) == {"mean", "low", "high"}
    assert 0 < one["latency_ms"]["first_token"]["p50"] <= one["latency_ms"]["last_token"]["p95"]
    assert one["latency_ms"]["refusal"]["p50"] > 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nowhere",), "nowhere/corpus.jsonl cannot be read"),
        (("nowhere", "--limit", "0"), "not a whole number above 0"),
    ],
)
def test_bad_input_is_told_in_a_sentence(arguments, complaint):
    with pytest.raises(CommandError, match=complaint):
        evaluate(*arguments)


def test_a_search_with_one_leg_is_no_figure(tmp_path, monkeypatch):
    folder = write_set(tmp_path / "staff")
    evaluate(folder)

    def broken(*_arguments):
        raise EmbeddingFailed("The embedder is ill.")

    clear_query_vector_cache()
    monkeypatch.setattr(OnnxMiniLM, "embed_query", broken)
    with pytest.raises(CommandError, match="vector"):
        evaluate(folder)


def test_a_collection_that_changes_meanwhile_is_no_figure(tmp_path, monkeypatch):
    folder = write_set(tmp_path / "staff")
    versions = iter([1, 2])  # as an import that ends meanwhile would leave it
    monkeypatch.setattr(runs, "corpus_version", lambda _collection: next(versions))
    with pytest.raises(CommandError, match="changed while they were asked"):
        evaluate(folder)
