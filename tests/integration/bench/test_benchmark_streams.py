"""The readers of the benchmark of open streams, on a model that writes slowly. Its output is not tested."""

import asyncio

from bench.speed.slow_model import run_slow_model
from bench.speed.streams import read_all_streams
from tests.support.site import free_port, wait_until


def test_a_reader_tells_why_it_read_nothing():
    (away,) = asyncio.run(read_all_streams(free_port(), ["How?"], "none"))
    assert away.error.startswith("ConnectionRefusedError")
    assert away.first == {}


def test_readers_hang_up_when_there_was_enough():
    with run_slow_model(tokens=100_000, token_seconds=0.02) as model:
        port = int(model.url.split(":")[2].split("/")[0])
        readings = asyncio.run(read_all_streams(port, ["How?"] * 2, "none", is_enough=lambda _: model.writing == 2))
        assert [reading.error for reading in readings] == ["", ""]
        wait_until(lambda: model.writing == 0, 60, "the model")
