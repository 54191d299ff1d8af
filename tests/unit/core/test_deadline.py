import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core import deadline


def test_without_a_question_a_part_has_its_own_time():
    assert deadline.get_current() is None
    assert deadline.seconds_left(7.0) == 7.0


def test_a_part_has_no_more_than_what_is_left():
    with deadline.limit_time(5.0):
        assert deadline.seconds_left(2.0) == 2.0
        assert 4.0 < deadline.seconds_left(60.0) <= 5.0
    assert deadline.seconds_left(60.0) == 60.0


def test_an_inner_limit_never_gives_more_time():
    with deadline.limit_time(5.0):
        with deadline.limit_time(60.0):
            assert deadline.seconds_left(60.0) <= 5.0
        with deadline.limit_time(1.0):
            assert deadline.seconds_left(60.0) <= 1.0
        assert deadline.seconds_left(60.0) > 1.0


def test_time_that_is_over_is_none_left():
    with deadline.limit_time(0.0):
        time.sleep(0.001)
        assert deadline.seconds_left(3.0) == 0.0


def test_the_time_of_a_stage_begins_with_its_thread():
    with ThreadPoolExecutor(1) as pool, deadline.limit_time(60.0):
        for _ in range(2):
            pool.submit(time.sleep, 0.3)
        assert deadline.Stage(pool, lambda: time.sleep(0.4) or "done").result(0.9) == "done"
        hung = deadline.Stage(pool, lambda: time.sleep(0.8))
        queued = deadline.Stage(pool, lambda: "never begun")
        with pytest.raises(TimeoutError):
            hung.result(0.2)
        with pytest.raises(TimeoutError):
            queued.result(0.2)


def test_a_thread_of_a_pool_inherits_it_in_a_stage():
    with ThreadPoolExecutor(1) as pool, deadline.limit_time(5.0) as outer:
        assert pool.submit(deadline.get_current).result() is None
        assert deadline.Stage(pool, deadline.get_current).result(60.0) is outer
