"""Rules for the answers of any language model, on a small real one that the site serves to itself."""

import re
import signal

import httpx2
import psutil
import pytest

from bench import build_site_environment
from chat.answering.extractive import NAME as QUOTED
from chat.models import Answer, ModelTrial
from tests.integration.test_killed import events_of
from tests.model.conftest import CONTEXT_TOKENS
from tests.support.site import SiteProcess, free_port, wait_until

pytestmark = [pytest.mark.django_db(transaction=True)]

QUESTIONS = ["How much does the MX-9920-W weigh?", "What do I do when the code E-041 is shown?"]
# Calls of functions, tags of templates and of thoughts, marks and rules of the prompt.
MACHINERY = re.compile(
    r"NO_ANSWER|ask_tables|\"(?:name|arguments|function|parameters)\"\s*:|<\|?/?(?:think|tool|im_|end|func)|\[/?INST\]"
    r"|\^[0-9a-f]{4}\^|SOURCE \[|^> |You answer questions from",
    re.MULTILINE,
)


def ask(client, question):
    response = client.post("/api/v1/ask/", {"question": question, "anew": True}, content_type="application/json")
    assert response.status_code == 200, response.text
    return response.json()


def assert_true(answer):
    """Assert that sentences are cited or marked, that no machinery is shown, and that the status is right."""
    assert answer.status == Answer.Status.COMPLETED, answer.error
    assert answer.text.strip()
    assert not MACHINERY.search(answer.text), answer.text
    if answer.generator == QUOTED:
        return
    for statement in answer.statements:
        said = answer.text[statement["start"] : statement["end"]]
        assert statement["markers"] or not statement["supported"], f"neither cited nor marked: {said!r}"
    # No words lie outside of the sentences that were checked.
    outside = answer.text
    for statement in sorted(answer.statements, key=lambda each: -each["start"]):
        outside = outside[: statement["start"]] + outside[statement["end"] :]
    assert not re.search(r"\w{3}", re.sub(r"\[\d+\]|^#+ .*$|\*\*", "", outside, flags=re.MULTILINE)), outside


def test_answers_are_whole_cited_and_nothing_but_answers(client, manual, model):
    for question in QUESTIONS:
        ask(client, question)
    answers = list(Answer.objects.all())
    assert len(answers) == len(QUESTIONS)
    for answer in answers:
        assert_true(answer)
        # The passage answers each of these: the site refuses none of them, and then nor may the model.
        assert not answer.refused, answer.question
        used = sum(answer.usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
        assert used <= CONTEXT_TOKENS
    assert any(answer.generator == "qwen" for answer in answers)


def test_the_site_refuses_before_the_model_is_asked(client, manual, model):
    assert ask(client, "Who won the football championship of 1974?")["refused"]
    answer = Answer.objects.get()
    assert answer.status == Answer.Status.COMPLETED
    assert answer.prompt_version is None
    assert not answer.usage


def test_an_answer_that_time_cuts_off_is_saved_and_says_so(client, manual, model):
    question = QUESTIONS[1]
    model.OPENAI_MAX_TOKENS = 10
    ask(client, question)  # read once, the prompt is kept
    model.OPENAI_MAX_TOKENS, model.OPENAI_TOTAL_SECONDS = 400, 0.4
    ask(client, question)
    cut = Answer.objects.latest("created_at")
    assert_true(cut)
    assert cut.notice


class Site:
    """The whole site, as `make run` starts it."""

    def __init__(self, log, port, process):
        self.log, self.port, self.process = log, port, process
        self.serve = psutil.Process(process.popen.pid)
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=120)

    def model(self):
        return next(child for child in self.serve.children() if "ragsite.processes.local_model" in child.cmdline())

    def model_state(self):
        return self.client.get("/readyz").json()["checks"]["language_model"]["state"]


def test_a_model_that_is_killed_while_it_writes(tmp_path, manual, model_file):
    (tmp_path / "demo-loaded").touch()
    log, port, model_port = tmp_path / "serve.log", free_port(), free_port()
    process = SiteProcess(
        ["django", "serve", "--port", str(port)],
        log,
        DATA_DIR=str(tmp_path),
        LOCAL_MODEL=str(model_file),
        OPENAI_CONTEXT_TOKENS=str(CONTEXT_TOKENS),
        OPENAI_MAX_TOKENS="200",
        **build_site_environment(LOCAL_MODEL_PORT=model_port, OPENAI_BASE_URL=f"http://127.0.0.1:{model_port}/v1"),
    )
    try:
        wait_until(lambda: "Ready: " in log.read_text(), 90, f"the site\n{log.read_text()}")
        site = Site(log, port, process)
        assert site.model_state() == "ok"
        # Its trial has begun with the site, not behind the first question that a table answers.
        wait_until(ModelTrial.objects.exists, 30, f"the trial\n{log.read_text()}")
        killed = site.model()
        assert {each.laddr.ip for each in killed.net_connections("tcp") if each.status == psutil.CONN_LISTEN} == {
            "127.0.0.1"
        }
        question = {"question": QUESTIONS[1], "anew": True, "stream": True}
        with site.client.stream("POST", "/api/v1/ask/", json=question) as response:
            events = events_of(response)
            wait_until(lambda: next(events)[1] == "token", 60)
            killed.kill()
            killed.wait(10)
            (name, ended) = [(name, data) for _id, name, data in events][-1]
        answer = Answer.objects.get()
        # It fell silent in the middle, or had just come to its end.
        assert name in ("completed", "failed"), ended
        assert answer.is_finished
        assert answer.notice or answer.error or answer.status == Answer.Status.COMPLETED
        assert not MACHINERY.search(answer.text), answer.text
        wait_until(lambda: site.model_state() == "ok", 60, f"the model again\n{log.read_text()}")
        assert site.model().pid != killed.pid
        assert "model ended with status -9" in log.read_text()
        again = site.client.post("/api/v1/ask/", json={"question": QUESTIONS[0], "anew": True})
        assert again.status_code == 200
        assert not again.json()["refused"]
        started = site.serve.children(recursive=True)
        process.popen.send_signal(signal.SIGTERM)
        assert process.popen.wait(30) == 0
        assert not any(each.is_running() for each in started)
    finally:
        process.stop()
