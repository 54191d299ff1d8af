"""How fast a language model is on this machine, as the site serves it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import httpx2
import psutil
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from bench import with_constants
from bench.reporting import positive
from ragsite.machine import is_answering

STARTING_SECONDS, ANSWERING_SECONDS = 120.0, 600.0

# The file descriptor: what stands for sys.stderr under a test has none.
STDERR = 2


class Command(BaseCommand):
    help = (
        "Serve a GGUF file as LOCAL_MODEL does, and measure how fast it reads a prompt and writes, and what memory it "
        "takes. Run it on an idle machine; with --threads 1 the figures by processor time hold for a busy one too."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", type=Path, metavar="FILE.gguf")
        parser.add_argument("--prompt-tokens", type=positive, default=1000, metavar="N", help="About so many (1,000).")
        parser.add_argument("--answer-tokens", type=positive, default=100, metavar="N", help="Written (100).")
        parser.add_argument("--threads", type=positive, help="Default: the processors that the site may use.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        prompt_tokens, answer_tokens = options["prompt_tokens"], options["answer_tokens"]
        threads = options["threads"] or settings.LOCAL_MODEL_THREADS
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": "",
            "LOCAL_MODEL": str(options["model"]),
            **with_constants(LOCAL_MODEL_THREADS=threads, LOCAL_MODEL_PORT=port),
            "OPENAI_CONTEXT_TOKENS": str(2 * prompt_tokens + answer_tokens + 500),
        }
        server = subprocess.Popen(
            [sys.executable, "-m", "ragsite.local_model"], cwd=settings.BASE_DIR, env=environment, stdout=STDERR
        )
        try:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=ANSWERING_SECONDS) as client:
                begun = time.monotonic()
                while not is_answering("127.0.0.1", port, "/health"):
                    if server.poll() is not None or time.monotonic() > begun + STARTING_SECONDS:
                        raise CommandError("The model could not be served; the lines above say why.")
                    time.sleep(0.2)
                process = psutil.Process(server.pid)
                _complete(client, "Hello.", 1)  # waits until the rules are read
                # A word of these is a token, and no line is like another.
                words = " ".join(f"{number % 10} apples and" for number in range(prompt_tokens // 4))
                before = process.cpu_times()
                read = _complete(client, words, 1)
                between = process.cpu_times()
                written = _complete(client, words, answer_tokens)
                after = process.cpu_times()
                figures = {
                    "model": options["model"].name,
                    "threads": threads,
                    "prompt_tokens": read["prompt_n"],
                    "prompt_tokens_per_second": round(read["prompt_per_second"], 1),
                    "prompt_tokens_per_processor_second": _rate(read["prompt_n"], before, between),
                    "written_tokens_per_second": round(written["predicted_per_second"], 1),
                    "written_tokens_per_processor_second": _rate(written["predicted_n"], between, after),
                    "resident_mib": process.memory_info().rss // 2**20,
                }
        finally:
            server.terminate()
            server.wait()
        if options["json"]:
            self.stdout.write(json.dumps(figures))
            return
        for name, value in figures.items():
            self.stdout.write(f"{name.replace('_', ' '):38} {value}")


def _complete(client: httpx2.Client, text: str, tokens: int) -> dict[str, Any]:
    """What the server measured of a completion of just so many tokens."""
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    response = client.post("/v1/chat/completions", json=body)
    response.raise_for_status()
    timings: dict[str, Any] = response.json()["timings"]
    return timings


def _rate(tokens: int, before: Any, after: Any) -> float:
    seconds: float = after.user + after.system - before.user - before.system
    return round(tokens / max(0.01, seconds), 1)
