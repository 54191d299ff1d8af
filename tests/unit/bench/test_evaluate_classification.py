import io
import json
from collections import Counter

import pytest
from django.core.management import CommandError, call_command

from bench.management.commands.evaluate_classification import SHIPPED

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


def test_accuracy_and_confusion_are_those_of_each_half_and_language(file):
    result = json.loads(evaluate(file, "--json"))
    assert set(result) == {"all", "tuning", "tuning, english", "held-out", "held-out, english", "held-out, dutch"}
    assert (result["all"]["questions"], result["all"]["accuracy"]["mean"]) == (4, 0.75)
    assert result["held-out, english"]["accuracy"]["mean"] == 0.5
    assert {label: number for label, number in result["held-out"]["confusion"]["code"].items() if number} == {
        "code": 1,
        "default": 1,
    }
    shown = evaluate(file, "--errors")
    assert "Confusion matrix, held-out" in shown
    assert "| code | 0 | 1 | 0 | 0 | 1 | 0.500 |" in shown
    assert "code, taken for default (no pattern): MX-9920-W" in shown


def test_more_than_nine_in_ten_of_the_sites_own_questions_that_no_rule_was_written_on_get_their_class():
    result = json.loads(evaluate("--json"))
    assert result["all"]["questions"] >= 300
    for language in ("english", "dutch"):
        assert result[f"held-out, {language}"]["accuracy"]["mean"] > 0.9
    # A question in both halves would be tuned on and tested with.
    rows = map(json.loads, SHIPPED.read_text().splitlines())
    assert max(Counter((row["language"], row["question"].casefold()) for row in rows).values()) == 1


def test_a_line_that_is_not_a_labelled_question_is_named(file):
    file.write_text(file.read_text() + '{"question": "x", "class": "howto", "language": "english", "split": "tuning"}')
    with pytest.raises(CommandError, match=r"line \d, cannot be used: 'howto' is not"):
        evaluate(file)
