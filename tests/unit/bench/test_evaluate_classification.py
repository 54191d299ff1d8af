from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

ROW = {"question": "opening hours", "class": "default", "language": "english", "split": "tuning"}
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
    path.write_text("\ufeff" + "\n".join(json.dumps(row) + "\r\n" for row in rows))
    return path


def evaluate(*arguments):
    out = io.StringIO()
    call_command("evaluate_classification", *map(str, arguments), stdout=out, stderr=out)
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


def test_the_table_has_the_matrix_of_the_held_out_half_and_the_errors_when_asked_for(file):
    shown = evaluate(file, "--errors")
    lines = shown.splitlines()
    header = next(line for line in lines if line.endswith("recall"))
    code = next(line for line in lines if line.startswith("code "))
    assert code.split() == ["code", "0", "1", "0", "0", "1", "0.500"]
    assert len(code) == len(header)
    assert "Confusion matrix, held-out" in shown
    assert "code, taken for default (no pattern): MX-9920-W" in shown
    assert "MX-9920-W" not in evaluate(file)


def test_more_than_nine_in_ten_of_the_sites_own_questions_that_no_rule_was_written_on_get_their_class():
    result = json.loads(evaluate("--json"))
    assert result["all"]["questions"] >= 300
    for language in ("english", "dutch"):
        assert result[f"held-out, {language}"]["accuracy"]["mean"] > 0.9


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ("{", "line 2, is not JSON"),
        (json.dumps({**ROW, "question": 7}), "line 2, cannot be used"),
        (json.dumps({**ROW, "question": "x", "class": "howto"}), "line 2, cannot be used: 'howto' is not"),
        (json.dumps({**ROW, "question": "x", "language": "german"}), "line 2, cannot be used: 'german'"),
        (
            json.dumps({**ROW, "question": "Opening hours", "split": "held-out"}),
            "question .* a second time",
        ),
    ],
)
def test_a_line_that_is_not_a_labelled_question_is_named(tmp_path, second, complaint):
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + second + "\n")
    with pytest.raises(CommandError, match=complaint):
        evaluate(file)
