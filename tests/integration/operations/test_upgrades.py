"""Sites of other versions: every release is upgraded, unsupported ones are refused in a sentence."""

import io
import json
import tarfile

import httpx2
import psycopg
import pytest
from django.db.migrations.loader import MigrationLoader

from ragsite.operations.backups import find_migration_problem
from tests.integration.operations.test_backup import DATABASE, Site
from tests.support.databases import url_of
from tests.support.release import RELEASES
from tests.support.site import SiteProcess, free_port, wait_until

RELEASED = sorted(path.name for path in RELEASES.iterdir())
READ_SECRETS = """
from chat.models import LanguageModel
from django.contrib.auth.models import User
from core.encryption import decrypt
from retrieval.models import Source, Webhook
from retrieval.sources.options import read_all_options
print("SECRETS", *(read_all_options(each)["password"] for each in Source.objects.all()),
    *(decrypt(each.SECRET_PURPOSE, each.secret) for each in Webhook.objects.all()),
    *(each.api_key for each in LanguageModel.objects.all()),
    User.objects.get(username="ada").check_password("password-of-the-site"))
"""


@pytest.fixture
def site(django_db_setup, tmp_path, model_cache):
    made = Site(tmp_path / "data", model_cache)
    yield made
    made.drop()


@pytest.mark.parametrize("release", RELEASED)
def test_the_site_of_a_release_is_restored_started_and_asked(site, tmp_path, release):
    facts = json.loads((RELEASES / release / "facts.json").read_text())
    site.lose()
    site.manage_all(("restore", str(RELEASES / release / "site.tar")))
    # In another process: the secret key was restored, too.
    [told] = site.manage_all(("shell", "-v", "0", "-c", READ_SECRETS))
    secrets = facts["secrets"]
    assert told.partition("SECRETS ")[2].split() == [secrets["source"], secrets["webhook"], secrets["model"], "True"]

    port, log = free_port(), tmp_path / "serve.log"
    served = SiteProcess(
        ["django", "serve", "--port", str(port)], log, DATABASE_URL=url_of(DATABASE), DATA_DIR=str(site.data_dir),
        WEB_CONCURRENCY="1",
    )  # fmt: skip
    try:
        wait_until(lambda: "Ready: " in log.read_text(), 60, f"the site\n{log.read_text()}")
        client = httpx2.Client(
            base_url=f"http://127.0.0.1:{port}/api/v1/", timeout=60, headers={"Authorization": f"Bearer {facts['key']}"}
        )

        def get(path, **params):
            response = client.get(path, params=params)
            assert response.status_code == 200, response.text
            return response.json()

        def ask(question, **fields):
            response = client.post("ask/", json={"question": question, **fields})
            assert response.status_code == 200, response.text
            return response.json()

        # The old site's documents can be read.
        assert {row["source"]: row["status"] for row in get("documents/")["results"]} == facts["documents"]
        first, *_ = get(f"conversations/{facts['conversation']}/")["answers"]
        assert (first["question"], first["answer"]) == (facts["question"], facts["answer"])
        assert (first["citations"][0]["quote"], first["feedback"]["helpful"]) == (facts["quote"], True)
        # Questions are answered with citations, of the passages that the release made.
        answer = ask(facts["question"], anew=True)
        assert facts["quote"] in answer["citations"][0]["quote"]
        follow_up = ask("and its price?", conversation=facts["conversation"])
        assert "210 euros" in follow_up["citations"][0]["quote"]
        assert ask(facts["approved_question"])["answer"] == facts["approved"]
        # Documents are read again, and a new version replaces the old.
        files = {"file": ("pump.md", b"# MX-9920-W\n\nThe MX-9920-W pump weighs 3600 grams.")}
        accepted = client.post("documents/", data={"collection": "manuals"}, files=files).json()["accepted"][0]
        assert accepted["changed"]
        wait_until(lambda: get(f"documents/{accepted['id']}/")["status"] in ("ready", "failed"))
        assert "3600 grams" in ask(facts["question"])["citations"][0]["quote"]
        assert "Traceback" not in log.read_text()
    finally:
        served.stop()


# States that this version does not upgrade ----------------------------------------------------------------------------

DISK = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
OWN = [key for key in DISK if key[0] in ("chat", "evaluation", "ragsite", "retrieval")]
OTHERS = [key for key in DISK if key not in OWN]
REPLACED = {key: list(DISK[key].replaces) for key in OWN if DISK[key].replaces}
OLD = [name for names in REPLACED.values() for name in names]
LATER = [key for key in OWN if key not in REPLACED]

BEFORE, AFTER = "is of a state before 0.1.0", "is of a newer version"
STATES = {
    "empty": ([], ""),
    "other apps alone, as after a first start that was interrupted": (OTHERS, ""),
    "this version": ([*OTHERS, *OWN], ""),
    "all that was squashed": ([*OTHERS, *OLD], ""),
    "all that was squashed, and what came then": ([*OTHERS, *OLD, *LATER], ""),
    "squashed migrations alone": (list(REPLACED), ""),
    "one app, after a first start that was interrupted": ([next(iter(REPLACED))], ""),
    "half of what was squashed": ([*OTHERS, *OLD[: len(OLD) // 2]], BEFORE),
    "the last of one app is missing": ([key for key in OLD if key != REPLACED["chat", "0001_tables"][-1]], BEFORE),
    "names from before the squashed ones": ([("chat", "0001_first"), ("retrieval", "0001_first")], BEFORE),
    "a migration that was deleted": ([*REPLACED, ("retrieval", "0003_terms_of_tables")], BEFORE),
    "newer": ([*OTHERS, *OWN, ("chat", "0099_later")], AFTER),
    "newer, from squashed": ([*OLD, *LATER, ("retrieval", "0099_later")], AFTER),
    "other apps that are switched off or newer": ([*OWN, ("allauth_idp_oidc", "0001_initial"), ("auth", "0099")], ""),
}


@pytest.mark.parametrize("name", STATES)
def test_states_that_cannot_be_migrated_are_recognised(name):
    applied, sentence = STATES[name]
    assert sentence in find_migration_problem(applied)
    assert bool(sentence) == bool(find_migration_problem(applied))


def _backup_of(applied, file):
    """Return a backup whose database has these migrations, as far as its manifest says."""
    release = RELEASES / RELEASED[0] / "site.tar"
    with tarfile.open(release) as whole, tarfile.open(file, "w") as changed:
        for member in whole:
            content = whole.extractfile(member)
            if member.name == "manifest.json":
                manifest = {**json.load(content), "migrations": [".".join(key) for key in applied]}
                content = io.BytesIO(json.dumps(manifest).encode())
                member.size = len(content.getvalue())
            changed.addfile(member, content)
    return file


@pytest.mark.parametrize("name", ["half of what was squashed", "newer"])
def test_every_door_refuses_them_in_one_sentence(site, tmp_path, name):
    applied, sentence = STATES[name]
    with psycopg.connect(url_of(DATABASE)) as database:
        database.execute("DELETE FROM django_migrations")
        for key in applied:
            database.execute("INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())", key)
    told = site.manage_all(
        ("migrate",),
        ("serve", "--port", "0"),
        ("restore", str(_backup_of(applied, tmp_path / "old.tar")), "--force"),
        fails=[0, 1, 2],
    )
    if sentence == BEFORE:
        [refused] = site.manage_all(("search", "pump"), fails=[0])
        assert "run `manage.py migrate` first" in refused
    for each in told:
        *_, last = each.strip().splitlines()
        assert last.partition("Error: This ")[0] in ("Command", "Backup")
        assert sentence in last
        assert "Traceback" not in each
