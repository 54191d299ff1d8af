"""Work spread over processes: all of it is answered for, whatever becomes of them."""

from __future__ import annotations

import os
from concurrent.futures.process import BrokenProcessPool

from retrieval.documents.file_loading import in_processes


def squared(number: int) -> tuple[int, int]:
    if number == 3:
        raise ValueError(number)
    return number * number, os.getpid()


def dying(number: int) -> None:
    os._exit(9)


def test_each_work_comes_back_with_its_result() -> None:
    ended = dict(in_processes(squared, range(30), 2))
    assert isinstance(ended.pop(3).exception(), ValueError)
    assert {number: future.result()[0] for number, future in ended.items()} == {n: n * n for n in range(30) if n != 3}
    assert os.getpid() not in {future.result()[1] for future in ended.values()}


def test_one_process_is_this_one() -> None:
    assert [future.result() for _, future in in_processes(squared, [2], 1)] == [(4, os.getpid())]


def test_what_a_dead_process_held_is_known() -> None:
    ended = dict(in_processes(dying, range(30), 2))
    assert set(ended) == set(range(30))
    assert all(isinstance(future.exception(), BrokenProcessPool) for future in ended.values())
