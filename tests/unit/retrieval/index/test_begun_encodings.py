"""A question's encoding that was begun in a thread."""

import os
import signal
import threading
import time

import pytest

from retrieval.exceptions import EmbeddingFailed
from retrieval.index import active_embedder, embedder_choice
from retrieval.index.active_embedder import begin_encoding_query, clear_query_vector_cache, encode_query


class SlowEmbedder:
    """An embedder that collects its texts; "slow" ones wait for ``may_end``."""

    name = "slow"

    def __init__(self):
        self.texts, self.ended = [], []
        self.may_end = threading.Event()
        self.begun = threading.Semaphore(0)
        self.error = None

    def embed_query(self, text):
        self.texts.append(text)
        self.begun.release()
        if "slow" in text:
            self.may_end.wait(30)
        self.ended.append(text)
        if self.error:
            raise self.error
        return f"vector of {text}"


@pytest.fixture
def embedder(monkeypatch):
    made = SlowEmbedder()
    monkeypatch.setattr(embedder_choice, "get_embedder", lambda: made)
    clear_query_vector_cache()
    yield made
    made.may_end.set()
    clear_query_vector_cache()


def test_a_begun_question_is_encoded_once(embedder):
    begin_encoding_query("wifi")
    assert encode_query("wifi") == encode_query("wifi") == "vector of wifi"
    # It is cached.
    begin_encoding_query("wifi")
    assert embedder.texts == ["wifi"]


def test_its_error_reaches_the_search_and_the_next_search_tries_again(embedder):
    embedder.error = EmbeddingFailed("broken")
    begin_encoding_query("wifi")
    with pytest.raises(EmbeddingFailed, match="broken"):
        encode_query("wifi")
    embedder.error = None
    assert encode_query("wifi") == "vector of wifi"


def test_a_forked_process_waits_for_no_thread_of_its_parent(embedder):
    begin_encoding_query("slow wifi")
    assert embedder.begun.acquire(timeout=30)
    child = os.fork()
    if not child:
        # The child has no thread that could end what its parent began.
        embedder.may_end.set()
        os._exit(0 if encode_query("slow wifi") == "vector of slow wifi" else 1)
    deadline = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    if ended[0] == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0)


def test_a_question_that_waits_for_a_thread_is_encoded_by_its_own_search(embedder):
    others = [f"slow {number}" for number in range(active_embedder._threads._max_workers)]
    for other in others:
        begin_encoding_query(other)
        assert embedder.begun.acquire(timeout=30)
    begin_encoding_query("wifi")
    assert encode_query("wifi") == "vector of wifi"
    assert embedder.ended == ["wifi"]
