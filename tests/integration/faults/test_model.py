"""A language model that errs, hangs, is slow, sends garbage or dies in the middle: the documents are quoted."""

import asyncio
import time

import pytest
from asgiref.sync import sync_to_async

from chat.answering import writers
from chat.models import Answer
from core import breaker
from tests.support.faults import FAULTS, ask, counted

pytestmark = pytest.mark.django_db(transaction=True)

QUOTED = "The language model did not answer. This answer is quoted from the documents instead."


@pytest.fixture
def model(model, settings):
    settings.OPENAI_TIMEOUT_SECONDS = 0.4
    return model


def break_it(model, fault):
    model.pieces = ["The MX-9920-W ", "weighs 3450 grams [", "1]."]
    model.statuses, model.delay_seconds, model.garbage, model.break_after = [], 0.0, False, None
    model.finish_reason = "content_filter" if fault == "filter" else "stop"
    match fault:
        case "error":
            model.statuses = [500] * 99
        case "hang":
            model.delay_seconds = 3.0
        case "slow":
            model.delay_seconds = 0.1
        case "garbage":
            model.garbage = True
        case "dies":
            model.break_after = 1


@pytest.mark.parametrize("fault", [*FAULTS, "filter"])
async def test_the_documents_are_quoted_and_the_next_question_is_the_models_again(library, model, fault):
    break_it(model, fault)
    failures = counted("ragsite_model_failures_total")
    answer, events = await ask()
    assert answer.status == Answer.Status.COMPLETED
    assert "3450 grams" in answer.text
    if fault == "slow":
        assert (answer.generator, answer.notice) == ("tiny", "")
    else:
        assert (answer.generator, answer.notice) == ("extractive", events[-1].payload["notice"])
        assert ("content filter stopped its answer" if fault == "filter" else QUOTED) in answer.notice
        # The prompt was paid for all the same.
        assert answer.usage["prompt_tokens"] > 0
        assert counted("ragsite_model_failures_total") == failures + 1
    break_it(model, "")
    assert (await ask())[0].generator == "tiny"


async def test_one_that_goes_on_failing_is_left_alone_until_it_answers_again(library, model, monkeypatch):
    break_it(model, "hang")
    for _ in range(breaker.FAILURES):
        await ask()
    asked = len(model.requests)
    answer, _events = await ask()
    assert len(model.requests) == asked
    assert (answer.generator, answer.notice) == ("extractive", QUOTED)
    assert breaker.list_breaker_states()["model"] is breaker.BreakerState.OPEN

    break_it(model, "")
    model.delay_seconds = 0.2
    generator = await sync_to_async(writers.find_generator)()
    monkeypatch.setattr(generator._client.breaker, "_clock", lambda: time.monotonic() + breaker.OPEN_SECONDS + 1)
    trial = asyncio.create_task(ask())
    while len(model.requests) == asked:
        await asyncio.sleep(0.01)
    # One at a time tries; with the model's first word the others are let in, not with its last.
    assert (await ask())[0].generator in ("extractive", "tiny")
    assert (await trial)[0].generator == "tiny"
    assert (await ask())[0].generator == "tiny"
    assert breaker.list_breaker_states()["model"] is breaker.BreakerState.CLOSED


async def test_a_refused_question_says_nothing_of_the_server(library, model):
    for _ in range(breaker.FAILURES + 1):
        model.statuses, model.said = [413], "too large"
        assert (await ask())[0].generator == "extractive"
    assert breaker.list_breaker_states()["model"] is breaker.BreakerState.CLOSED
    assert (await ask())[0].generator == "tiny"


async def test_what_is_written_at_the_deadline_is_kept_and_marked(library, model, settings):
    settings.QUESTION_SECONDS = 4.0
    model.pieces = ["It weighs 3450 grams [1].\n\n", *[f"word{n} " for n in range(500)]]
    model.delay_seconds = 0.1
    started = time.monotonic()
    answer, _events = await ask()
    # The model's time ends before the question's, so that what it wrote can be checked and saved.
    assert time.monotonic() - started < 4.0 + 2.0
    assert answer.status == Answer.Status.COMPLETED
    assert answer.text.startswith("It weighs 3450 grams [1].\n\nword0")
    assert "This answer was cut off: it reached the largest length or time." in answer.notice
    assert answer.generator == "tiny"
