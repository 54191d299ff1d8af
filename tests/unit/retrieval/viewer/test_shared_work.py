from __future__ import annotations

import threading
import time

import pytest

from retrieval.viewer.pdf_pages import IsWanted, SharedWork, TooMuchWork


def test_what_many_ask_for_is_done_once() -> None:
    work: SharedWork[int] = SharedWork(1, 5, 100)
    done: list[int] = []
    go = threading.Event()

    def function(is_wanted: IsWanted) -> int:
        go.wait(10)
        done.append(1)
        return len(done)

    with work.join_work("a", function) as first, work.join_work("a", function) as second:
        go.set()
        assert (first.result(10), second.result(10)) == (1, 1)
    with work.join_work("a", function) as third:
        assert third.result(10) == 2


def test_an_error_reaches_all_who_wait() -> None:
    work: SharedWork[int] = SharedWork(1, 5, 100)

    def function(is_wanted: IsWanted) -> int:
        raise ValueError("no")

    with work.join_work("a", function) as future, pytest.raises(ValueError, match="no"):
        future.result(10)


def test_work_that_nobody_waits_for_is_told_and_asked_for_anew() -> None:
    work: SharedWork[str] = SharedWork(2, 5, 100)
    ended = threading.Event()

    def endless(is_wanted: IsWanted) -> str:
        while is_wanted(0):
            time.sleep(0.01)
        ended.set()
        return "given up"

    with work.join_work("a", endless):
        with work.join_work("a", endless):
            pass
        assert not ended.wait(0.2)
    with work.join_work("a", lambda _: "fresh") as future:
        assert future.result(10) == "fresh"
    assert ended.wait(10)


def test_too_much_work_is_refused() -> None:
    work: SharedWork[int] = SharedWork(1, 1, 4)
    go = threading.Event()

    def slow(is_wanted: IsWanted) -> int:
        go.wait(10)
        return 1

    with work.join_work("a", slow), work.join_work("b", slow):
        with pytest.raises(TooMuchWork), work.join_work("c", slow):
            pass
        with work.join_work("a", slow), work.join_work("a", slow):
            with pytest.raises(TooMuchWork), work.join_work("a", slow):
                pass
        go.set()
    # Refusals leave nothing behind.
    with work.join_work("c", slow) as future:
        assert future.result(10) == 1
