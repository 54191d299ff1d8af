import os
import signal

import pytest

from core.slots import ProcessSemaphore


def test_a_slot_is_held_against_forks_and_free_when_its_holder_is_killed():
    slots = ProcessSemaphore(1)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with slots.take(lambda _seconds: True):
            os.write(writing, b"!")
            signal.pause()
    assert os.read(reading, 1) == b"!"
    with pytest.raises(TimeoutError), slots.take(lambda _seconds: False):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with slots.take(lambda _seconds: False), pytest.raises(TimeoutError), slots.take(lambda _seconds: False):
        pass
