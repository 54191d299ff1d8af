"""Files that are written whole or not at all."""

import os
import time

import pytest

from core.recent import ABANDONED_AFTER_SECONDS, write_file_atomically


@pytest.mark.parametrize(("age_seconds", "is_left"), [(0.0, True), (ABANDONED_AFTER_SECONDS + 60, False)])
def test_what_a_killed_process_left_is_removed_when_it_is_old(tmp_path, age_seconds, is_left):
    left = tmp_path / ".graph.onnx.123-456"
    left.write_bytes(b"half")
    os.utime(left, times=(time.time() - age_seconds,) * 2)
    write_file_atomically(tmp_path / "graph.onnx", b"whole")
    assert (tmp_path / "graph.onnx").read_bytes() == b"whole"
    assert left.exists() is is_left
    assert len(list(tmp_path.iterdir())) == 1 + is_left
