from __future__ import annotations

import uuid

import pytest

from chat.streaming.admission import RESERVED_SECONDS, Admission, QueueFull, Ticket
from retrieval.resilience.slots import FileLock


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> Admission:
    return Admission(clock)


def take(queue: Admission, at_once: int = 2, waiting: int = 3) -> uuid.UUID:
    answer_id = uuid.uuid4()
    queue.reserve(answer_id, at_once=at_once, waiting=waiting)
    return answer_id


def join(queue: Admission, woken: list[str] | None = None) -> Ticket:
    return queue.join(take(queue), lambda: woken.append("woken") if woken is not None else None)


def test_places_move_up_as_others_leave(queue: Admission) -> None:
    tickets = [join(queue) for _ in range(5)]
    assert [queue.place(ticket, 2) for ticket in tickets] == [-1, 0, 1, 2, 3]
    for ticket in tickets[:2]:
        queue.begin(ticket)
    assert [queue.place(ticket, 2) for ticket in tickets[2:]] == [1, 2, 3]
    woken: list[str] = []
    tickets[4].wake = lambda: woken.append("woken")
    queue.leave(tickets[3])
    assert queue.place(tickets[4], 2) == 2
    queue.leave(tickets[0])
    assert queue.place(tickets[2], 2) == 0
    assert woken == ["woken"] * 2
    assert queue.counts() == (1, 2)


def test_what_comes_at_once_cannot_pass_together(queue: Admission) -> None:
    for _ in range(5):
        take(queue)
    with pytest.raises(QueueFull):
        take(queue)


def test_a_place_that_nobody_takes_is_free_again(queue: Admission, clock: Clock) -> None:
    answers = [take(queue) for _ in range(5)]
    queue.release(answers[0])
    take(queue)
    with pytest.raises(QueueFull):
        take(queue)
    clock.now += RESERVED_SECONDS
    assert queue.counts() == (0, 0)
    take(queue)


def test_who_was_taken_gets_in_though_the_reservation_is_over(queue: Admission, clock: Clock) -> None:
    late = take(queue)
    clock.now += RESERVED_SECONDS
    for _ in range(5):
        join(queue)
    ticket = queue.join(late, lambda: None)
    assert queue.place(ticket, 2) == 4


def test_when_to_come_again_follows_from_how_long_answers_take(queue: Admission, clock: Clock) -> None:
    for _ in range(30):
        ticket = join(queue)
        queue.begin(ticket)
        clock.now += 10
        queue.leave(ticket)
    for _ in range(5):
        join(queue)
    with pytest.raises(QueueFull) as refused:
        take(queue)
    # Four are ahead of the next one's turn, two at a time, ten seconds each.
    assert refused.value.retry_after_seconds == 20


def test_one_caller_has_a_share_of_the_places_and_others_go_before_what_is_over_it(
    queue: Admission, clock: Clock
) -> None:
    late = uuid.uuid4()
    queue.reserve(late, at_once=4, waiting=8, caller="flood", most_of_caller=3)
    clock.now += RESERVED_SECONDS
    flood = [uuid.uuid4() for _ in range(3)]
    for answer_id in flood:
        queue.reserve(answer_id, at_once=4, waiting=8, caller="flood", most_of_caller=3)
    with pytest.raises(QueueFull) as refused:
        queue.reserve(uuid.uuid4(), at_once=4, waiting=8, caller="flood", most_of_caller=3)
    assert (refused.value.of_caller, refused.value.retry_after_seconds) == (True, 2)
    tickets = [queue.join(answer_id, lambda: None, 3) for answer_id in flood]
    # Who comes for an answer after its reservation ended has no more places either.
    with pytest.raises(QueueFull):
        queue.join(late, lambda: None, 3)
    other = uuid.uuid4()
    queue.reserve(other, at_once=4, waiting=8, caller="other", most_of_caller=3)
    others = queue.join(other, lambda: None, 3)
    queue.begin(tickets[0])
    assert [queue.place(ticket, 4, 1) for ticket in (*tickets[1:], others)] == [1, 1, -2]
    assert [queue.place(ticket, 4, 2) for ticket in (*tickets[1:], others)] == [-2, 1, -1]
    queue.leave(tickets[0])
    assert queue.place(tickets[1], 4, 1) == -3


def test_the_places_of_the_dead_are_free(queue: Admission, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.begin(join(queue))
    # A supervisor begins with an empty queue: one before it was killed, and its forks with it.
    heard = queue.share(2)
    assert queue.counts() == (0, 0)
    queue.forget(1)
    queue.free_forgotten()
    assert [bell.recv(9) for bell in heard] == [b"!", b"!"]

    queue.belong_to(1)
    queue.begin(join(queue))
    queue.forget(1)
    with monkeypatch.context() as hung:
        hung.setattr(FileLock, "try_acquire", lambda _: False)
        queue.free_forgotten()
    # Its successor has begun meanwhile.
    queue.begin(join(queue))
    assert queue.counts() == (2, 0)
    queue.free_forgotten()
    assert queue.counts() == (1, 0)
