"""What is read at most once in a block."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from core.read_once import cache_reads_in_block, get_or_read


def counted():
    calls = []

    def read():
        calls.append(None)
        return len(calls)

    return read, calls


def test_a_block_reads_each_key_once_and_the_next_block_again():
    read, calls = counted()
    for number in (1, 2):
        with cache_reads_in_block():
            assert [get_or_read("a", read), get_or_read("a", read)] == [number, number]
    assert get_or_read("a", read) == 3
    assert get_or_read("a", read) == len(calls) == 4


def test_threads_that_copy_the_context_share_what_was_read():
    read, calls = counted()
    with cache_reads_in_block(), ThreadPoolExecutor(1) as pool:
        assert get_or_read("a", read) == 1
        assert pool.submit(copy_context().run, get_or_read, "a", read).result() == 1
        assert get_or_read("b", read) == 2
    assert len(calls) == 2


def test_none_is_a_value():
    with cache_reads_in_block():
        assert get_or_read("a", lambda: None) is None
        assert get_or_read("a", lambda: 1) is None
