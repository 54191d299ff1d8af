import os

import pytest

from ragsite.processes.machine import available_memory_mib, count_available_cores


@pytest.mark.parametrize(("quota", "cores"), [(None, 8), ("max 100000", 8), ("150000 100000", 2), ("20000 100000", 1)])
def test_a_container_may_use_fewer_processors_than_there_are(quota, cores, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    if quota is not None:
        (tmp_path / "cpu.max").write_text(f"{quota}\n")
    assert count_available_cores(tmp_path) == cores


def test_memory_is_what_the_container_may_take(tmp_path):
    whole = available_memory_mib(tmp_path)
    assert whole > 512
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory_mib(tmp_path) == whole
    (tmp_path / "memory.max").write_text(f"{512 * 2**20}\n")
    assert available_memory_mib(tmp_path) == 512
