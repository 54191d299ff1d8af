"""Test whether a language model calls functions correctly, once for each model and server."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta

from asgiref.sync import async_to_sync
from celery import current_app
from django.utils import timezone

from chat.answering import writers
from chat.answering.checking.citations import find_markers
from chat.answering.prompts import RULES, estimate_tokens, quote_result
from chat.answering.tool_calls import ASK_TABLES, FUNCTION, FunctionCallCollector, UnanswerableCall
from chat.models import LanguageModel, ModelTrial
from core.encryption import SecretUnreadable
from core.exceptions import ModelFailed
from core.language_model.completion_client import CompletionClient, Request
from core.language_model.machinery import ReplyCleaner

logger = logging.getLogger(__name__)

TRIAL_SECONDS, TRIAL_TOKENS = 120.0, 120
LOST_AFTER = timedelta(minutes=15)
_TABLES = (
    f"Tables that {FUNCTION} can compute over, with their columns; these are not sources:\n> Pumps: model, weight in kg"
)
_OF_TABLE = f"{_TABLES}\n\nAnswer in English.\nQuestion: How many pumps weigh more than 2 kg?"
_OF_SOURCE = (
    "SOURCE [1] Handbook\n> The workshop opens at 9 and closes at 17.\n\n"
    f"{_TABLES}\n\nAnswer in English.\nQuestion: When does the workshop open?"
)
_OF_TWO = (
    "SOURCE [1] Handbook\n> The workshop opens at 9 and closes at 17.\n\n"
    "SOURCE [2] Prices\n> A repair costs 40 euros, and takes two days.\n\n"
    "Answer in English.\nQuestion: When does the workshop open, and what does a repair cost?"
)


@dataclass(slots=True)
class ModelTrialResult:
    """The results of a language model's trial.

    If the trial ended early, ``error`` is the reason, and the fields of later steps are None.
    """

    text: str = ""
    first_seconds: float | None = None
    tokens_per_second: float | None = None
    writes_markers: bool | None = None
    uses_functions: bool | None = None
    error: str = ""


def run_model_trial(model: LanguageModel) -> ModelTrialResult:
    """Run the model's trial now, and measure its speed. This takes as long as four short answers."""
    tried = ModelTrialResult()
    try:
        async_to_sync(_measure_trial_answer)(_build_client(model), tried)
        tried.uses_functions = try_model(model)
    except ModelFailed as error:
        tried.error = str(error)
    return tried


async def _measure_trial_answer(client: CompletionClient, tried: ModelTrialResult) -> None:
    messages = [{"role": "system", "content": RULES}, {"role": "user", "content": _OF_TWO}]
    began, first, counted = time.monotonic(), None, None
    request = Request(messages, began + TRIAL_SECONDS, TRIAL_TOKENS)
    async with aclosing(client.stream_deltas(request)) as received:
        async for delta in received:
            if delta.text and first is None:
                first = time.monotonic()
            tried.text += delta.text
            counted = delta.completion_tokens or counted
    if first is None:
        raise ModelFailed("The model said nothing in place of an answer.")
    tried.first_seconds = first - began
    if (seconds := time.monotonic() - first) > 0:
        tried.tokens_per_second = (counted or estimate_tokens(tried.text)) / seconds
    tried.writes_markers = {marker.number for marker in find_markers(tried.text)} >= {1, 2}


def can_call_functions(name: str) -> bool:
    """Return whether the model passed its trial, so that functions may be offered to it.

    If it was never tried, queue the trial and return False.
    """
    model = writers.list_language_models().get(name)
    if model is None:
        return False
    trial, is_new = ModelTrial.objects.get_or_create(
        model=_format_endpoint(model), defaults={"tried_at": timezone.now()}
    )
    # A trial without a result after this time lost its worker, and is started again.
    is_lost = trial.uses_functions is None and trial.tried_at < timezone.now() - LOST_AFTER
    if is_new or is_lost:
        ModelTrial.objects.filter(pk=trial.pk).update(tried_at=timezone.now())
        current_app.send_task("chat.tasks.try_model", [name])
    return bool(trial.uses_functions)


def try_model(model: LanguageModel) -> bool:
    """Try whether the model calls functions correctly, and store the result. Raises: ModelFailed."""
    trial, _ = ModelTrial.objects.get_or_create(model=_format_endpoint(model), defaults={"tried_at": timezone.now()})
    try:
        passed = async_to_sync(_can_call_functions)(_build_client(model))
    except ModelFailed as error:
        logger.warning("%s could not be tried: %s", trial.model, error)
        trial.delete()
        raise
    trial.uses_functions, trial.tried_at = passed, timezone.now()
    trial.save()
    logger.info("%s %s the trial of its calls.", trial.model, "passed" if passed else "failed")
    return passed


def _build_client(model: LanguageModel) -> CompletionClient:
    try:
        return CompletionClient(model.endpoint, TRIAL_SECONDS)
    except SecretUnreadable as error:
        raise ModelFailed(f"The API key of {model.name} cannot be read. {error}") from error


async def _can_call_functions(client: CompletionClient) -> bool:
    messages = [{"role": "system", "content": RULES}, {"role": "user", "content": _OF_TABLE}]
    said, calls = await _complete(client, messages)
    try:
        questions = [call.read_question() for call in calls]
    except UnanswerableCall:
        return False
    if said or len(questions) != 1 or "pump" not in questions[0].lower():
        return False
    (call,) = calls
    result = {
        "role": "tool",
        "tool_call_id": call.id,
        "content": quote_result("17 pumps weigh more than 2 kg.", [], 100),
    }
    called = {"role": "assistant", "content": "", "tool_calls": [call.to_openai_format()]}
    said, calls = await _complete(client, [*messages, called, result])
    if "17" not in said or calls:
        return False
    said, calls = await _complete(client, [messages[0], {"role": "user", "content": _OF_SOURCE}])
    return "9" in said and not calls


async def _complete(
    client: CompletionClient, messages: Sequence[Mapping[str, object]]
) -> tuple[str, FunctionCallCollector]:
    calls, machinery, said = FunctionCallCollector(), ReplyCleaner(), ""
    request = Request(messages, time.monotonic() + TRIAL_SECONDS, TRIAL_TOKENS, tools=[ASK_TABLES])
    async with aclosing(client.stream_deltas(request)) as received:
        async for delta in received:
            calls.add(delta.calls)
            said += machinery.feed(delta.text)
    return (said + machinery.close()).strip(), calls


def _format_endpoint(model: LanguageModel) -> str:
    return f"{model.model} at {model.base_url}"[:500]
