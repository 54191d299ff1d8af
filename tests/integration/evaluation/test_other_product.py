"""Another product is asked a set's questions over OpenAI's protocol, and both columns have the same checks."""

import json

import pytest
from django.core.management import CommandError, call_command

from evaluation.runs.other_product import is_refusal
from tests.support.model_server import model_server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def product():
    with model_server() as state:
        state.whole = True
        yield state


def run_beside(answers, product, capsys, *options):
    call_command("evaluate_set", answers.slug, "--openai", product.url, "--model", "assistant", *options)
    return capsys.readouterr().out


def test_both_products_are_asked_and_checked_alike(answers, product, capsys, monkeypatch):
    monkeypatch.setenv("THEIR_KEY", "their-secret")
    product.pieces = ["The MX-9920-W pump weighs 3450 grams."]
    found = json.loads(run_beside(answers, product, capsys, "--key-variable", "THEIR_KEY", "--json"))
    asked = [request["messages"][-1]["content"] for request in product.requests]
    assert asked == [question.text for question in answers.questions.order_by("pk")]
    assert {request["model"] for request in product.requests} == {"assistant"}
    assert all("their-secret" in headers["Authorization"] for headers in product.headers)
    ours, theirs = found["beside"]["ours"], found["beside"]["theirs"]
    assert ours["questions"] == theirs["questions"] == 4
    assert ours["metrics"]["refusal"]["mean"] == 1
    # It answered the question about football, which the documents do not answer.
    assert theirs["metrics"]["refusal"]["mean"] == 0.75
    assert theirs["metrics"]["agreement"]["mean"] < ours["metrics"]["agreement"]["mean"]
    assert "their-secret" not in json.dumps(found)


def test_refusals_and_failures_of_the_other_product_are_counted(answers, product, capsys):
    product.pieces = ["I could not find that in the documents."]
    product.statuses = [401]
    shown = run_beside(answers, product, capsys)
    assert "3 of 4 replies of assistant count as refusals" in shown
    assert "1 of 4 questions failed and are left out" in shown
    assert "this site" in shown


def test_a_product_that_limits_its_requests_is_waited_for(answers, product, capsys):
    product.statuses, product.retry_after = [429, 503], "0"
    shown = run_beside(answers, product, capsys)
    assert "failed" not in shown
    assert len(product.requests) == 6


def test_a_product_that_never_answers_is_an_error(answers, product):
    product.statuses = [401] * 4
    with pytest.raises(CommandError, match="401"):
        call_command("evaluate_set", answers.slug, "--openai", product.url, "--model", "assistant")


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("I don’t know the answer.", True),
        ("Sorry, the documents do not contain that. Ask the front desk.", True),
        ("Dat kan ik niet vinden in de documenten.", True),
        ("", True),
        ("The documents may not answer this. These passages come closest:", True),
        ("The pump weighs 3450 grams. I could not find its price.", False),
        ("It is made of bronze.", False),
    ],
)
def test_the_first_sentence_shows_a_refusal(text, refuses):
    assert is_refusal(text) is refuses
