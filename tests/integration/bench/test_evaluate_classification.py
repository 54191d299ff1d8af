from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

QUESTIONS = [
    ("What is a wet rotor?", "conceptual", "english", "tuning"),
    ("load_index", "code", "english", "held-out"),
    ("MX-9920-W", "code", "english", "held-out"),
    ("De pomp werkt niet", "troubleshooting", "dutch", "held-out"),
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "questions.jsonl"
    rows = (dict(zip(("question", "class", "language", "split"), row, strict=True)) for row in QUESTIONS)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def evaluate(*arguments):
    out = io.StringIO()
    call_command("evaluate_classification", *map(str, arguments), stdout=out)
    return out.getvalue()


def test_the_json_gives_accuracy_and_confusion_for_each_half_and_language(file):
    result = json.loads(evaluate(file, "--json"))
    assert set(result) == {"all", "tuning", "tuning, english", "held-out", "held-out, english", "held-out, dutch"}
    assert result["all"]["questions"] == 4
    assert result["all"]["accuracy"]["mean"] == 0.75
    assert result["held-out, english"]["accuracy"]["mean"] == 0.5
    assert result["held-out"]["confusion"]["code"] == {
        "conceptual": 0, "code": 1, "troubleshooting": 0, "comparison": 0, "default": 1,
    }  # fmt: skip


def test_the_matrix_of_the_held_out_half_is_a_table_whose_columns_align(file):
    lines = evaluate(file).splitlines()
    header = next(line for line in lines if line.endswith("recall"))
    code = next(line for line in lines if line.startswith("code "))
    assert code.split() == ["code", "0", "1", "0", "0", "1", "0.500"]
    assert len(code) == len(header)
    assert "Confusion matrix, held-out" in "\n".join(lines)


def test_errors_are_listed_with_the_rule_only_when_asked_for(file):
    assert "code, taken for default (no pattern): MX-9920-W" in evaluate(file, "--errors")
    assert "MX-9920-W" not in evaluate(file)


def test_without_a_file_the_questions_that_came_with_the_site_are_judged():
    assert json.loads(evaluate("--json"))["all"]["questions"] >= 300


def test_a_broken_file_ends_with_a_sentence_that_names_the_line(file):
    file.write_text(file.read_text() + '{"question": "half"\n')
    with pytest.raises(CommandError, match="line 5, is not JSON"):
        evaluate(file, "--json")
