"""A password hasher that counts, for tests of how many hashes are computed, and how many at once."""

import threading
import time
from typing import ClassVar

from django.contrib.auth.hashers import MD5PasswordHasher


class CountingHasher(MD5PasswordHasher):
    """Fast but for ``seconds``. ``begun`` are the hashes computed, ``most`` those at the same time."""

    algorithm = "counting"
    begun: ClassVar[int] = 0
    running: ClassVar[int] = 0
    most: ClassVar[int] = 0
    seconds: ClassVar[float] = 0.0
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def reset(cls, seconds=0.0):
        cls.begun = cls.running = cls.most = 0
        cls.seconds = seconds

    def encode(self, password, salt):
        cls = type(self)
        with cls._lock:
            cls.begun += 1
            cls.running += 1
            cls.most = max(cls.most, cls.running)
        try:
            time.sleep(cls.seconds)
            return super().encode(password, salt)
        finally:
            with cls._lock:
                cls.running -= 1
