"""Serve the language model in the file LOCAL_MODEL over OpenAI's protocol, only to this machine."""

from __future__ import annotations

import importlib.util
import signal
import sys
from datetime import date
from pathlib import Path

import django
import psutil
from django.conf import settings
from django.db import DatabaseError, connections
from kombu.exceptions import OperationalError

from chat.answering.prompts import compose_prompt
from ragsite.processes.machine import WORK_SCORE, available_memory_mib, find_port_problem, is_answering, raise_oom_score

HOST = "127.0.0.1"
# MiB that a small model needs in addition to its file, for the context, work space and cached prompts.
OTHER_MIB = 512
KEPT_PROMPTS_MIB = 256
# After this time, `serve` announces the site even if the model is not loaded yet.
LOADING_SECONDS = 90.0


def find_problem() -> str:
    path = Path(settings.LOCAL_MODEL)
    try:
        with path.open("rb") as file:
            is_model = file.read(4) == b"GGUF"
    except OSError as error:
        return f"LOCAL_MODEL: the file {path} cannot be read ({error.strerror})."
    if not is_model:
        return f"LOCAL_MODEL: {path} is not a GGUF file."
    if importlib.util.find_spec("xllamacpp") is None:
        return "LOCAL_MODEL needs the package xllamacpp: pip install -r requirements-local-model.txt"
    needed_mib = path.stat().st_size // 2**20 + OTHER_MIB
    free_mib = min(psutil.virtual_memory().available // 2**20, available_memory_mib())
    if free_mib < needed_mib:
        return f"LOCAL_MODEL: {path.name} needs about {needed_mib} MiB of memory, and {free_mib} MiB are free."
    if found := find_port_problem(HOST, settings.LOCAL_MODEL_PORT):
        return (
            f"LOCAL_MODEL: port {settings.LOCAL_MODEL_PORT} on {HOST} cannot be used ({found}). "
            f"If it is another site's model, ask that one: OPENAI_BASE_URL={settings.OPENAI_BASE_URL}"
        )
    return ""


def is_ready() -> bool:
    return is_answering(HOST, settings.LOCAL_MODEL_PORT, "/health")


def main() -> None:
    if not settings.LOCAL_MODEL:
        sys.exit("LOCAL_MODEL names no model.")
    if found := find_problem():
        sys.exit(found)
    raise_oom_score(WORK_SCORE)
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = settings.LOCAL_MODEL
    parameters.model_alias = {settings.OPENAI_MODEL}
    parameters.hostnames, parameters.port = [HOST], settings.LOCAL_MODEL_PORT
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings.LOCAL_MODEL_THREADS
    # Two answers at once would each be half as fast.
    parameters.n_parallel, parameters.n_ctx = 1, settings.OPENAI_CONTEXT_TOKENS
    # With an n_cache_reuse above 0, the model would reuse states that depend on another reader's prompt.
    parameters.cache_prompt, parameters.cache_ram_mib, parameters.n_cache_reuse = True, KEPT_PROMPTS_MIB, 0
    # A second layout of the weights would be slower on x86-64, and would take 50 % more memory.
    parameters.no_extra_bufts = True
    parameters.fit_params = False
    parameters.use_jinja = parameters.warmup = True
    # Web pages of other sites cannot call the model. The endpoint `/slots` would show other callers' questions.
    parameters.cors_origins, parameters.cors_origins_explicit = f"http://{HOST}", True
    parameters.cors_credentials = parameters.ui = parameters.endpoint_slots = False
    parameters.verbosity = 1
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError:
        sys.exit(f"The model {settings.LOCAL_MODEL} could not be served; the lines above say why.")
    # The model reads the common beginning of all prompts now, to answer the first question faster.
    prompt = compose_prompt("?", (), today=date.today(), budget_tokens=settings.OPENAI_CONTEXT_TOKENS)
    server.handle_chat_completions({"messages": list(prompt.messages), "max_tokens": 1})
    _test_function_calls()
    signal.pause()


def _test_function_calls() -> None:
    """Test whether the model can call functions, so that no reader has to wait for the result."""
    django.setup()
    # Django's models are loaded only now, so the import is here.
    from chat.answering import model_trial

    try:
        model_trial.can_call_functions(settings.OPENAI_MODEL)
    except (DatabaseError, OperationalError) as error:
        print(f"The model is tried with the first question about a table: {error}")
    finally:
        connections.close_all()


if __name__ == "__main__":
    main()
