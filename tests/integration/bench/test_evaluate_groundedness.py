import io
import json

import pytest
from django.core.management import CommandError, call_command

PASSAGES = ["The pump weighs 3450 grams. The pump must not run dry.", "The warranty lasts two years after delivery."]
ANSWERS = [
    ("The pump weighs 3450 grams.", None),
    ("The pump's weight is 3450 grams, and the warranty lasts two years.", None),
    ("Unable to answer based on the given passages.", None),
    ("The pump weighs 3450 grams. It is painted bright green in Finland.", "It is painted bright green in Finland."),
    ("The pump weighs 9999 grams.", "9999"),
    ("The pump must run dry.", "must run dry"),
]


def row(number, answer, bad):
    at = answer.index(bad) if bad else 0
    spans = [{"start": at, "end": at + len(bad), "label_type": "Evident Conflict"}] if bad else []
    return {
        "_id": str(number), "source_id": str(number % 3), "passages": PASSAGES, "answer": answer,
        "hallucinated": bool(bad), "spans": spans,
    }  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "responses.jsonl"
    path.write_text("".join(json.dumps(row(number, *each)) + "\n" for number, each in enumerate(ANSWERS)))
    return path


def evaluate(*arguments):
    out, progress = io.StringIO(), io.StringIO()
    call_command("evaluate_groundedness", *map(str, arguments), stdout=out, stderr=progress)
    return out.getvalue()


def test_the_json_gives_the_area_with_its_interval_beside_the_baseline(file):
    result = json.loads(evaluate(file, "--json"))
    assert {"answers", "auroc", "low", "high", "baseline_auroc"} <= set(result)
    assert (result["answers"], result["auroc"]) == (6, 1.0)
    assert result["low"] <= result["auroc"] <= result["high"]
    # The refusal has no word in common with the passages: the share of words takes it for the worst answer.
    assert result["baseline_auroc"] < 0.7
    assert result["sentences"] == {"judged": 6, "marked": 3, "precision": 1.0, "recall": 1.0}


def test_bad_files_are_refused(file, tmp_path):
    with pytest.raises(CommandError, match="cannot be read"):
        evaluate(tmp_path / "absent.jsonl")
    first = file.read_text().splitlines()[0]
    file.write_text(first + "\n")
    with pytest.raises(CommandError, match="needs an answer that is hallucinated and one that is not"):
        evaluate(file)
    file.write_text(first + '\n{"passages": "x", "answer": "y", "hallucinated": true}\n')
    with pytest.raises(CommandError, match="line 2, cannot be used: 'x' is not a list"):
        evaluate(file)
