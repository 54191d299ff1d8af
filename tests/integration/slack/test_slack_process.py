"""The Slack app's process: Socket Mode, several processes, and kill -9 at any time."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import Answer
from ragsite.models import SlackQuestion
from tests.integration.slack.test_slack import ASKED, OPEN, deliver
from tests.support.model_server import model_server
from tests.support.people import make_reader
from tests.support.site import SiteProcess, wait_until
from tests.support.slack_server import SECRET, Workspace, direct, mention

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]

THREAD = "1800000001.000100"
SOCKET = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
HTTP = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": SECRET}


@pytest.fixture
def slack(settings, collection, ingest):
    ingest(collection, "pump.md", OPEN)
    make_reader("ann", "ann@example.org")
    with Workspace().running() as workspace:
        settings.SLACK_BOT_TOKEN, settings.SLACK_SIGNING_SECRET = "xoxb-1", SECRET
        settings.SLACK_API_URL = workspace.url
        workspace.add("U0ANN", "ann@example.org")
        yield workspace


@pytest.fixture
def start(tmp_path, slack):
    """``start(**environment)``: a process that has begun to answer."""
    started = []

    def _start(**environment):
        log = tmp_path / f"slack{len(started)}.log"
        process = SiteProcess(["tests.support.slack_process", slack.url], log, **environment)
        started.append(process)
        wait_until(lambda: "The Slack app runs" in log.read_text(), 60, log.read_text())
        return process

    yield _start
    for process in started:
        process.stop()


def is_ended(number=1):
    ended = SlackQuestion.objects.exclude(status="waiting")
    return ended.count() == number


def let_time_pass():
    """Let the leases of a killed process lapse."""
    long_ago = timezone.now() - timedelta(seconds=31)
    for model in (SlackQuestion, Answer):
        model.objects.filter(lease__isnull=False).update(heartbeat_at=long_ago)


def test_socket_mode_delivers_and_is_told_once_the_question_is_stored(slack, start):
    start(**SOCKET)
    wait_until(lambda: slack.is_connected, 20)
    for envelope in ("E1", "E2"):
        slack.push(mention("U0ANN", ASKED), envelope)
    wait_until(is_ended, 60)
    assert sorted(slack.acknowledged) == ["E1", "E2"]
    assert "3450 grams" in slack.text_of(THREAD)
    assert Answer.objects.count() == len(slack.messages) == 1


def test_two_processes_answer_each_question_once(slack, start):
    start(**HTTP)
    start(**HTTP)
    for number in range(6):
        for _delivery in range(2):
            deliver(direct("U0ANN", ASKED, ts=f"180000000{number}.000100"))
    wait_until(lambda: is_ended(6), 90)
    assert Answer.objects.count() == len(slack.messages) == 6
    assert [method for method, _given in slack.calls].count("chat.postMessage") == 6


@pytest.mark.parametrize("method", ["users.info", "chat.postMessage", "chat.update"])
def test_a_process_that_is_killed_while_slack_works_leaves_one_message_and_one_answer(slack, start, method):
    slack.hung = method
    process = start(**HTTP)
    deliver(mention("U0ANN", ASKED))
    wait_until(lambda: method in [called for called, _given in slack.calls], 60)
    process.kill()
    let_time_pass()
    start(**HTTP)
    wait_until(is_ended, 60)
    assert "3450 grams" in slack.text_of(THREAD)
    assert Answer.objects.count() == len(slack.messages) == 1


def test_a_process_that_is_killed_while_a_model_writes_finishes_after_its_start(slack, start):
    with model_server() as model:
        model.pieces, model.delay_seconds = ["The MX-9920-W ", "weighs 3450 grams [", "1]."], 3.0
        environment = {**HTTP, "OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "tiny"}
        process = start(**environment)
        deliver(mention("U0ANN", ASKED))
        wait_until(lambda: Answer.objects.filter(status="generating").exists(), 60)
        process.kill()
        assert slack.text_of(THREAD) == "Searching the documents…"
        let_time_pass()
        model.delay_seconds = 0.0
        start(**environment)
        wait_until(is_ended, 60)
    assert "3450 grams" in slack.text_of(THREAD)
    answer = Answer.objects.get()
    assert (answer.status, answer.attempts, len(slack.messages)) == ("completed", 2, 1)


def test_readiness_says_that_no_process_answers_and_metrics_count(slack, settings):
    settings.METRICS_PUBLIC = True
    deliver(mention("U0ANN", ASKED))
    SlackQuestion.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    told = json.dumps(Client().get("/readyz").json())
    assert "ragsite.processes.slack_app" in told
    assert 'ragsite_slack_questions{status="waiting"} 1.0' in Client().get("/metrics").content.decode()
    settings.SLACK_BOT_TOKEN = ""
    assert "slack_app" not in json.dumps(Client().get("/readyz").json())
