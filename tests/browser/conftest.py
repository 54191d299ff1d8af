"""A real Chromium, and real web servers on databases with the demo documents.

The demo documents are read once; both servers have a copy of that database. A browser context is a visitor: no test
sees the questions of another one.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from bench import build_site_environment
from tests.support.databases import create_database, database, url_of
from tests.support.demo import make_demo_database
from tests.support.model_server import ModelServer, model_server
from tests.support.site import WebServer, free_port

# The timeout is long because machines can be slow: tests do not wait for elements that are there.
TIMEOUT_MILLISECONDS = 40_000
# The headless shell is the same engine without the window around it, which costs as much as a page.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)

WIDE = {"viewport": {"width": 1440, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
# Each width and each scheme of colours once: what is wide or narrow does not depend on what is light or dark.
LOOKS = [(WIDE, "light"), (PHONE, "dark")]


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(
                    pytest.mark.skip(reason="There is no Chromium: `apt install chromium-headless-shell` brings one.")
                )


@pytest.fixture(scope="package")
def playwright(_pw_api_request_contexts):
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as running:
        expect.set_options(timeout=TIMEOUT_MILLISECONDS)
        # Django takes that loop for a reason not to query.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        if _pw_api_request_contexts:
            _pw_api_request_contexts.instrument(running)
        yield running


@pytest.fixture(scope="package")
def browser(playwright, browser_type_launch_args):
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split(), **browser_type_launch_args)
    yield browser
    browser.close()


@dataclass
class Complaints:
    """Browsers' reports: errors in the console (breaches of the security policy included) and errors of scripts.

    A test that provokes one names a part of it in ``expected``.
    """

    found: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def heard(self, message):
        if message.type in ("error", "warning"):
            self.found.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def failed(self, error):
        self.found.append(f"script: {error.error}")


@pytest.fixture
def complaints():
    return Complaints()


@pytest.fixture
def visitor(browser, complaints):
    """Return a function, ``visitor(**PHONE)``, that opens a page in a new browser.

    No page may leave an error in its console.
    """
    contexts = []

    def come(**options):
        context = browser.new_context(**{**WIDE, "reduced_motion": "reduce", **options})
        contexts.append(context)
        context.set_default_timeout(TIMEOUT_MILLISECONDS)
        context.on("console", complaints.heard)
        context.on("weberror", complaints.failed)
        return context.new_page()

    yield come
    for context in contexts:
        context.close()
    assert [one for one in complaints.found if not any(part in one for part in complaints.expected)] == []


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def anywhere(request, visitor):
    return visitor(**request.param)


@pytest.fixture
def page(visitor):
    return visitor()


@dataclass(frozen=True)
class Site:
    """A running site. Inside ``with site.data():`` the test's models use the site's database."""

    url: str
    database: str
    server: WebServer

    def data(self):
        return database(self.database)

    def work(self):
        """Do a worker's work in this process: read documents, take drafts on, measure sets."""
        self.do(_work)

    def do(self, function, *arguments):
        """Call the function on the site's database, in a thread without Playwright's event loop."""

        def call():
            from django.db import connections

            function(*arguments)
            connections.close_all()

        with self.data(), ThreadPoolExecutor(1) as worker:
            worker.submit(call).result()

    def sign_in(self, page, name="admin"):
        """Go to the first page as somebody who has signed in."""
        from django.conf import settings
        from django.contrib.auth.models import User
        from django.test import Client

        client = Client()
        with self.data():
            client.force_login(User.objects.get(username=name))
        page.context.add_cookies(
            [
                {
                    "name": settings.SESSION_COOKIE_NAME,
                    "value": client.cookies[settings.SESSION_COOKIE_NAME].value,
                    "url": self.url,
                }
            ]
        )
        page.goto(self.url)


def _work():
    from evaluation.models import EvaluationRun
    from evaluation.tasks import measure_evaluation_run
    from retrieval.models import Document, Draft
    from retrieval.tasks import ingest_document, resume_draft

    for document in Document.objects.filter(status=Document.WAITING):
        ingest_document(document.pk)
    for draft in Draft.objects.all():
        resume_draft(draft.pk)
    for run in EvaluationRun.objects.filter(status=EvaluationRun.WAITING):
        measure_evaluation_run(run.pk)


@pytest.fixture(scope="session")
def demo_database(django_db_setup, django_db_blocker):
    """Return the name of a database with the demo documents and an administrator, which is only copied."""
    name = "browser_demo"
    with django_db_blocker.unblock():
        make_demo_database(name)
        yield name


@pytest.fixture(scope="session")
def _start_shared_site(demo_database, tmp_path_factory):
    """Return a function that starts sites with these variables, on copies of the demo database."""
    started = []

    def start(**environment):
        name = f"browser_{len(started) + 1}"
        create_database(name, demo_database)
        log = tmp_path_factory.mktemp(name) / "web.log"
        server = WebServer(log, **{"DATABASE_URL": url_of(name), "DJANGO_ALLOW_ASYNC_UNSAFE": "", **environment})
        started.append(server)
        return Site(server.url, name, server)

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def other_port():
    """Return the port of a site that has the widget on its pages."""
    return free_port()


@pytest.fixture(scope="session")
def site(_start_shared_site, other_port):
    """Return the site as it is after `make run`: the demo documents, and no language model.

    It may fetch pages of the tests. A module removes at its end all that it added, except visitors' questions.
    """
    sites = f"https://www.example.org, http://localhost:{other_port}"
    passkeys = {"MFA_SUPPORTED_TYPES": ["totp", "recovery_codes", "webauthn"], "MFA_PASSKEY_LOGIN_ENABLED": True}
    return _start_shared_site(
        SOURCE_PRIVATE_HOSTS="127.0.0.1", WIDGET_SITES=sites, **build_site_environment(**passkeys)
    )


@pytest.fixture(scope="session")
def _model():
    with model_server() as state:
        yield state


@pytest.fixture(scope="session")
def model_site(_start_shared_site, _model):
    """Return a site whose answers are always written by the language model of the fixture ``model``."""
    return _start_shared_site(
        OPENAI_BASE_URL=_model.url, OPENAI_MODEL="tiny", **build_site_environment(ANSWER_CACHE_SECONDS=0)
    )


@pytest.fixture
def model(_model):
    """Reset the language model of ``model_site``."""
    fresh = ModelServer()
    for one in fields(fresh):
        if one.name != "url":
            setattr(_model, one.name, getattr(fresh, one.name))
    return _model
