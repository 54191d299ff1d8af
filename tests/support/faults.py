"""One question, asked as a reader asks it, and what the faults of a part may do to its answer."""

import asyncio
import time

from prometheus_client import REGISTRY

from core import readiness
from core.readiness import CachedCheck
from tests.support import asking

# The question uses the document's words: without the embedder, words alone decide whether the document answers.
QUESTION = "How many grams does the MX-9920-W weigh?"
FAULTS = ["error", "hang", "slow", "garbage", "dies"]
# QUESTION_SECONDS of these tests: no part may take longer, whatever it does; honest answers come long before.
DEADLINE_SECONDS = 20.0


def short_times(settings):
    settings.QUESTION_SECONDS = DEADLINE_SECONDS
    # The same question is asked again to see whether the site has recovered.
    settings.ANSWER_CACHE_SECONDS = 0


async def ask(question=QUESTION):
    """Return the saved answer and its events. Fails when they take longer than the deadline."""
    started = time.monotonic()
    async with asyncio.timeout(DEADLINE_SECONDS):
        answered = await asking.ask(question)
    assert time.monotonic() - started < DEADLINE_SECONDS
    return answered


def counted(metric, **labels):
    return REGISTRY.get_sample_value(metric, labels) or 0.0


def checks_with(name):
    """Return the readiness checks of the group that has one of this name."""
    return next(group.checks for group in readiness.list_check_groups() if name in group.checks)


def forget_findings():
    """Have every readiness check look again, the expensive ones too."""
    for group in readiness.list_check_groups():
        for check in group.checks.values():
            if isinstance(check, CachedCheck):
                check.finding = None
