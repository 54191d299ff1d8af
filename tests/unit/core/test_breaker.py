import pytest
from prometheus_client import REGISTRY

from core import breaker, deadline
from core.breaker import Breaker, BreakerOpen, BreakerState


class Broken(Exception):
    pass


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tested(clock):
    return Breaker("tested", failures=3, seconds=30.0, clock=clock)


def call(tested, error=None):
    with tested.guard_call(Broken):
        if error is not None:
            raise error
    return "answered"


def fail(tested, times):
    for _ in range(times):
        with pytest.raises(Broken):
            call(tested, Broken())


def test_it_opens_after_so_many_failures_in_a_row(tested):
    fail(tested, 2)
    assert call(tested) == "answered"
    fail(tested, 2)
    assert tested.state is BreakerState.CLOSED
    fail(tested, 1)
    assert tested.state is BreakerState.OPEN
    with pytest.raises(BreakerOpen, match="left alone for 30 s"):
        call(tested)


def test_one_trial_at_a_time_decides(tested, clock):
    fail(tested, 3)
    clock.now += 29.9
    with pytest.raises(BreakerOpen):
        call(tested)
    clock.now += 0.2
    assert tested.state is BreakerState.TRYING
    with tested.guard_call(Broken), pytest.raises(BreakerOpen, match="another question is trying"):
        call(tested)
    assert tested.state is BreakerState.CLOSED
    assert call(tested) == "answered"


def test_a_trial_that_fails_opens_it_for_as_long_again(tested, clock):
    fail(tested, 3)
    clock.now += 31
    fail(tested, 1)
    clock.now += 29
    with pytest.raises(BreakerOpen):
        call(tested)
    clock.now += 2
    assert call(tested) == "answered"


def test_a_trial_that_tells_nothing_lets_the_next_one_try(tested, clock):
    fail(tested, 3)
    clock.now += 31
    with pytest.raises(KeyError):
        call(tested, KeyError("of another kind"))
    assert tested.state is BreakerState.TRYING
    assert call(tested) == "answered"


def test_a_trial_whose_thread_died_keeps_nobody_out_for_ever(tested, clock):
    fail(tested, 3)
    clock.now += 31
    tested.enter()
    clock.now += breaker.TRIAL_SECONDS
    assert call(tested) == "answered"


def test_other_errors_do_not_count(tested):
    for _ in range(5):
        with pytest.raises(KeyError):
            call(tested, KeyError("of another kind"))
    assert tested.state is BreakerState.CLOSED


def test_a_question_asks_once_what_fails(tested):
    with deadline.limit_time(60.0):
        fail(tested, 1)
        for _ in range(3):
            with pytest.raises(BreakerOpen, match="has failed this question before"):
                call(tested)
    assert tested.state is BreakerState.CLOSED
    with deadline.limit_time(60.0):
        assert call(tested) == "answered"


def test_a_question_without_time_asks_nobody(tested):
    with deadline.limit_time(0.0), pytest.raises(BreakerOpen, match="time is over"):
        call(tested)
    assert tested.state is BreakerState.CLOSED


def test_its_state_is_a_metric_and_listed(tested, clock):
    def is_open():
        return REGISTRY.get_sample_value("ragsite_breaker_open", {"part": "tested"})

    assert is_open() == 0
    assert breaker.list_breaker_states()["tested"] is BreakerState.CLOSED
    fail(tested, 3)
    assert is_open() == 1
    assert breaker.list_breaker_states()["tested"] is BreakerState.OPEN
    clock.now += 31
    call(tested)
    assert is_open() == 0
