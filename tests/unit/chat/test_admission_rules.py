import uuid

import pytest

from chat.exceptions import BudgetSpent, SiteBusy
from chat.streaming.admission import RESERVED_SECONDS, AnswerAdmission


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(clock, settings):
    settings.ANSWERS_AT_ONCE, settings.ANSWERS_WAITING, settings.CALLER_SHARE = 2, 3, 0.25
    return AnswerAdmission(clock)


def take(queue, caller=""):
    answer_id = uuid.uuid4()
    queue.reserve(answer_id, caller)
    return answer_id


def join(queue, caller=""):
    answer_id = take(queue, caller)
    queue.join(answer_id, lambda: None)
    return answer_id


def test_places_move_up_as_others_leave(queue):
    woken = []
    answers = [take(queue) for _ in range(5)]
    for number, answer in enumerate(answers):
        queue.join(answer, lambda number=number: woken.append(f"woken {number}"))
    assert [queue.get_position(answer) for answer in answers] == [-1, 0, 1, 2, 3]
    for answer in answers[:2]:
        queue.begin(answer)
    assert [queue.get_position(answer) for answer in answers[2:]] == [1, 2, 3]
    woken.clear()
    queue.leave(answers[3])
    assert queue.get_position(answers[4]) == 2
    queue.leave(answers[0])
    assert queue.get_position(answers[2]) == 0
    assert woken == ["woken 2", "woken 4"] * 2
    assert queue.count_writing_and_waiting_answers() == (1, 2)


@pytest.mark.parametrize(("processes", "places"), [(1, 5), (2, 2), (3, 2), (8, 1)])
def test_a_process_has_its_part_of_the_places_and_at_least_one(queue, processes, places):
    queue.processes = processes
    for _ in range(places):
        take(queue)
    with pytest.raises(SiteBusy):
        take(queue)


def test_a_place_that_nobody_takes_is_free_again(queue, clock):
    answers = [take(queue) for _ in range(5)]
    queue.release_reservation(answers[0])
    take(queue)
    with pytest.raises(SiteBusy):
        take(queue)
    clock.now += RESERVED_SECONDS
    for _ in range(5):
        join(queue)
    # A caller that was admitted gets in though the reservation is over.
    queue.join(answers[1], lambda: None)
    assert queue.get_position(answers[1]) == 4


def test_a_full_queue_asks_for_the_time_that_its_answers_take(queue, clock):
    waits = []
    for seconds in (10, 1000):
        for _ in range(10):
            answer = join(queue)
            queue.begin(answer)
            clock.now += seconds
            queue.leave(answer)
        for _ in range(5):
            take(queue)
        with pytest.raises(SiteBusy) as raised:
            take(queue)
        waits.append(raised.value.retry_after_seconds)
        clock.now += RESERVED_SECONDS
    # Two at once, three wait: the next one begins after two more rounds.
    assert waits == [20, 60]


def test_one_caller_has_a_share_of_the_places_and_others_go_before_what_is_over_it(queue, clock, settings):
    settings.ANSWERS_AT_ONCE, settings.ANSWERS_WAITING = 4, 8
    late = [take(queue, "flood") for _ in range(3)]
    clock.now += RESERVED_SECONDS
    flood = [take(queue, "flood") for _ in range(3)]
    with pytest.raises(BudgetSpent):
        take(queue, "flood")
    # A caller who asks for answers after their reservation ended, or in another process, takes no places of others.
    for answer_id in (*flood, *late):
        queue.join(answer_id, lambda: None, "flood")
    others = [join(queue, f"other {number}") for number in range(9)]
    with pytest.raises(SiteBusy):
        take(queue, "other")
    queue.begin(flood[0])
    assert [queue.get_position(others[0]), queue.get_position(others[1])] == [-2, -1]
    assert [queue.get_position(answer) for answer in (*flood[1:], *late)] == [7, 8, 9, 10, 11]
    settings.CALLER_SHARE = 0.5
    assert [queue.get_position(flood[1]), queue.get_position(others[0])] == [-2, -1]
    queue.leave(flood[0])
    settings.CALLER_SHARE = 0.25
    assert queue.get_position(flood[1]) == -3
