"""A model's stream cannot block the process: others are answered while it writes."""

import asyncio
import time

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from chat.answering.openai_compatible import CHARACTERS_PER_TOKEN
from chat.models import Answer
from chat.streaming import asking
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

# The thread of all streams may work this long between two answers to others. Quadratic patterns took minutes.
LONGEST_HOLD_SECONDS = 2.0
ANSWER_TOKENS = 3000
SAID = "The zeppelin weighs 215 tonnes [1]"


library = library_of({"zeppelin.md": "# The zeppelin\n\nThe zeppelin is filled with hydrogen and weighs 215 tonnes."})


@pytest.fixture
def model(model, settings):
    settings.OPENAI_MAX_TOKENS, settings.OPENAI_CONTEXT_TOKENS = ANSWER_TOKENS, 16000
    return model


async def _longest_hold(done):
    """Return the most time of the processor that this thread has spent between two answers of /healthz."""
    longest, client = 0.0, AsyncClient()
    while not done.is_set():
        begun = time.thread_time()
        # All the time, to answer it would take longer than to stream.
        await asyncio.sleep(0.05)
        assert (await client.get("/healthz")).status_code == 200
        longest = max(longest, time.thread_time() - begun)
    return longest


async def ask():
    """Return the answer, the page's stream of it, and how long another reader had to wait meanwhile."""
    asker = await User.objects.acreate_user("asker")
    begun = await sync_to_async(asking.create_answer)("What does the zeppelin weigh?", user=asker, visitor="")
    client, done = AsyncClient(), asyncio.Event()
    await client.aforce_login(asker)
    other_reader = asyncio.create_task(_longest_hold(done))
    response = await client.get(f"/answers/{begun.pk}/stream/")
    page = b"".join([part async for part in response.streaming_content]).decode()
    done.set()
    return await Answer.objects.aget(pk=begun.pk), page, await other_reader


@pytest.mark.parametrize(
    "pieces",
    [[*[" " * 100] * 400, "x"], [f"word{number} " for number in range(6000)], ["\n| a | b |"] * 1500, ["[" * 50] * 200],
    ids=["blanks", "words", "rows", "brackets"],
)
async def test_readers_are_answered_while_a_model_writes_what_takes_long_to_read(library, model, pieces):
    model.pieces = [SAID, *pieces]
    answer, page, hold_seconds = await ask()
    assert hold_seconds < LONGEST_HOLD_SECONDS
    assert answer.text.startswith(SAID)
    # A model that writes the same over and over is stopped.
    is_whole = answer.text == "".join(model.pieces).strip()
    assert is_whole or "repeated itself" in answer.notice or "cut off" in answer.notice
    assert answer.status == Answer.Status.COMPLETED
    assert page.rstrip().endswith("event: done\ndata:")


async def test_an_answer_without_an_end_is_cut_off_and_the_reader_is_told(library, model):
    # The text exceeds the buffers of a connection, so that the server notices that no client reads.
    model.pieces = [SAID, *(" ".join(f"more{number}x{at}" for at in range(1000)) for number in range(2000))]
    answer, _, _ = await ask()
    assert len(answer.text) <= CHARACTERS_PER_TOKEN * ANSWER_TOKENS
    assert answer.text.startswith(SAID)
    assert "This answer was cut off" in answer.notice
    assert model.closed_early.wait(10), "the rest is not read"
