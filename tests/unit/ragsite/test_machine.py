from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragsite.machine import available_cores, available_memory_mib


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("", {}, 8),
        ("0::/\n", {"cpu.max": "max 100000"}, 8),
        ("0::/\n", {"cpu.max": "150000 100000"}, 2),
        ("0::/\n", {"cpu.max": "20000 100000"}, 1),
        ("0::/site/web\n", {"site/cpu.max": "300000 100000", "site/web/cpu.max": "max 100000"}, 3),
    ],
)
def test_a_container_may_use_fewer_processors_than_there_are(
    own: str, files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    told = tmp_path / "cgroup"
    told.write_text(own)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_cores(tmp_path, told) == cores


def test_memory_is_what_the_container_may_take(tmp_path: Path) -> None:
    whole = available_memory_mib(tmp_path)
    assert whole > 512
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory_mib(tmp_path) == whole
    (tmp_path / "memory.max").write_text(f"{512 * 2**20}\n")
    assert available_memory_mib(tmp_path) == 512
