"""The web server, with processes whose event loop hangs when they are sent SIGUSR2; killed after 3 seconds of it."""

import signal
import time

from ragsite.processes import web
from ragsite.processes.web import *  # noqa: F403

timeout = 3


def post_worker_init(worker):
    web.post_worker_init(worker)
    worker.loop.add_signal_handler(signal.SIGUSR2, time.sleep, 1000)
