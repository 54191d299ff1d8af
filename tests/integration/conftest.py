import pytest
from kombu.transport import memory

from core.language_model import completion_client
from retrieval.documents.drafts import lifecycle
from retrieval.models import Draft
from tests.support.judge_server import judge_server
from tests.support.model_server import model_server
from tests.support.site import Workers, real_queue


def lose_tasks():
    """Remove all tasks from the broker in memory, which every test of a process shares."""
    for tasks in memory.Channel.queues.values():
        tasks.queue.clear()


@pytest.fixture(autouse=True)
def _empty_broker():
    lose_tasks()


@pytest.fixture
def queue(transactional_db):
    """Yield the queue that workers read, in the test database, empty."""
    with real_queue():
        yield


@pytest.fixture(scope="module")
def workers(django_db_setup, tmp_path_factory):
    """``workers.running()``: the worker of this module."""
    started = Workers(tmp_path_factory.mktemp("workers"))
    yield started
    started.stop()


@pytest.fixture
def model(settings, monkeypatch):
    monkeypatch.setattr(completion_client, "FIRST_PAUSE_SECONDS", 0.01)
    with model_server() as server:
        server.pieces = ["The MX-9920-W ", "weighs 3450 grams [", "1]."]
        settings.OPENAI_BASE_URL, settings.OPENAI_MODEL = server.url, "tiny"
        yield server


@pytest.fixture
def judge(settings):
    with judge_server() as state:
        settings.JUDGE_BASE_URL, settings.JUDGE_MODEL, settings.EVALUATE_WITH_MODEL = state.url, "tiny-judge", True
        yield state


@pytest.fixture
def draft(library):
    """Return a draft of the library, with all documents copied."""
    found = lifecycle.resume_draft(lifecycle.begin_draft(library).pk)
    assert found.status == Draft.Status.OPEN
    return found


@pytest.fixture
def admin(client, admin_user):
    client.force_login(admin_user)
    return client
