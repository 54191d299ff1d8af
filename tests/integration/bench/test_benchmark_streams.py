"""The benchmark of open streams, small: a real web process, a model that writes slowly, real readers."""

from __future__ import annotations

import asyncio
import json
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from bench.speed import streams
from bench.speed.slow_model import slow_model
from bench.speed.streams import read_all
from chat.models import Conversation
from retrieval.models import Collection
from tests.support.site import database_url, free_port, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_streams_are_measured_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url())
    page = tmp_path / "performance.md"
    page.write_text("# Speed\n\n<!-- streams -->\n<!-- /streams -->\n")
    out = StringIO()
    options = ["--streams", "3", "--tokens", "60", "--token-seconds", "0.02", "--over", "0"]
    call_command("benchmark_streams", *options, "--json", "--write", str(page), stdout=out)
    told = json.loads(out.getvalue())
    assert (told["streams"], told["errors"]) == (3, 0)
    seconds = told["seconds"]
    assert 0 < seconds["searched"]["p50"] <= seconds["token"]["p50"] < seconds["completed"]["p50"]
    assert seconds["completed"]["p50"] - seconds["token"]["p50"] > 60 * 0.02 * 0.8
    assert 50 < told["before"]["memory_mib"] <= told["peak"]["memory_mib"] < 2000
    assert 0 < told["peak"]["database_connections"] < 60
    assert min(told[f"{of}_ms_per_stream"] for of in ("cpu", "readers")) > 0
    # Of another's database nothing is known.
    assert bool(told["database_ms_per_stream"]) == (settings.EMBEDDED_POSTGRES is not None)
    assert told["vanished"]["readers"] == 3
    assert set(told["statuses"]) <= {"completed", "stopped"}
    assert "| first word |" in page.read_text()
    assert not Collection.objects.filter(slug=streams.SLUG).exists()
    assert not Conversation.objects.exists()


def test_a_reader_tells_why_it_read_nothing() -> None:
    (away,) = asyncio.run(read_all(free_port(), ["How?"], "none"))
    assert away.error.startswith("ConnectionRefusedError")
    assert away.first == {}


def test_readers_hang_up_when_there_was_enough() -> None:
    with slow_model(tokens=100_000, token_seconds=0.02) as model:
        port = int(model.url.split(":")[2].split("/")[0])

        def enough(readings: object) -> bool:
            return model.writing == 2

        readings = asyncio.run(read_all(port, ["How?"] * 2, "none", enough=enough))
        assert [reading.error for reading in readings] == ["", ""]
        wait_until(lambda: model.writing == 0, 60, "the model")
