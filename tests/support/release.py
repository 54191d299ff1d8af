"""Make a small site with this version's own code, and keep it for the versions that follow.

``python -m tests.support.release`` writes ``tests/integration/releases/VERSION/``: `site.tar`, as `manage.py backup`
makes it, and `facts.json`, which a later version is tested against. Run it on the commit of a release.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ROOT / "tests" / "integration" / "releases"
DOCUMENTS = {
    "manuals/pump.md": "# MX-9920-W\n\nThe MX-9920-W pump weighs 3450 grams.\n\n## Price\n\nIts price is 210 euros.\n",
    "manuals/valves.csv": "valve,pressure,material\nVX-1,16 bar,brass\nVX-2,25 bar,steel\nVX-3,40 bar,steel\n",
    "staff/leave.md": "# Leave\n\nEmployees have 25 days of leave a year. Days that are left lapse in July.\n",
}
QUESTION, FOLLOW_UP = "How heavy is the MX-9920-W pump?", "and its price?"
APPROVED_QUESTION, APPROVED = "How many days of leave do I have?", "You have **25 days** of leave a year [1]."


def make(folder: Path) -> None:
    """Fill the site of this process's settings, which is empty, and write its backup and facts to ``folder``."""
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    from chat.curation import approval
    from chat.models import ApprovedAnswer, LanguageModel
    from core.key_limits import KeyScope
    from ragsite.accounts.keys import issue_key
    from retrieval import webhooks
    from retrieval.management.prepared import migrate
    from retrieval.models import Chunk, Collection, Document, Webhook, WebhookDelivery
    from retrieval.models.webhook import announce_event
    from tests.support.evaluation_sets import measured, set_of
    from tests.support.sources import make_source

    migrate()
    secrets = {name: f"{name}-of-the-site" for name in ("password", "source", "model")}
    admin = User.objects.create_superuser("ada", "ada@example.org", secrets["password"])
    key = issue_key(admin, "release", tuple(KeyScope)).secret
    for slug, visibility in (("manuals", "public"), ("staff", "staff")):
        Collection.objects.create(slug=slug, name=slug.title(), visibility=visibility)
    for name, text in DOCUMENTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for slug in ("manuals", "staff"):
        call_command("ingest", folder / slug, collection=slug)
        shutil.rmtree(folder / slug)

    asked = Client(headers={"host": "localhost", "authorization": f"Bearer {key}"})

    def ask(**fields: str) -> dict[str, object]:
        response = asked.post("/api/v1/ask/", fields, content_type="application/json")
        assert response.status_code == 200, response.content
        return dict(response.json())

    answer = ask(question=QUESTION, collection="manuals")
    ask(question=FOLLOW_UP, conversation=str(answer["conversation"]))
    asked.post(f"/api/v1/answers/{answer['answer_id']}/feedback/", {"helpful": True}, content_type="application/json")
    disliked = {"helpful": False, "reason": "outdated", "comment": "It has grown."}
    unanswered = ask(question="Who won the football championship of 1974?")
    asked.post(f"/api/v1/answers/{unanswered['answer_id']}/feedback/", disliked, content_type="application/json")

    staff, manuals = Collection.objects.get(slug="staff"), Collection.objects.get(slug="manuals")
    approved = ApprovedAnswer(question=APPROVED_QUESTION, text=APPROVED, collection=staff, owner=admin)
    approval.approve_answer(approved, admin)
    approval.save_sources(approved, [(1, Chunk.objects.filter(document__source="leave.md").earliest("ordinal"))])
    approval.save_wordings(approved, ["How much leave is there?"])

    measured(set_of(manuals, "pumps", {QUESTION: "pump.md"}))

    account = {"url": "https://files.example.org/handbook/", "username": "ada", "password": secrets["source"]}
    source = make_source(manuals, "webdav", account)
    source.is_paused = True
    source.save()
    webhook = Webhook(address="https://hooks.example.org/", events=[Webhook.Event.DOCUMENT_FAILED])
    secrets["webhook"] = webhooks.new_secret()
    webhook.set_secret(secrets["webhook"])
    webhook.save()
    announce_event(
        Webhook.Event.DOCUMENT_FAILED, {"document": 0, "source": "scan.pdf", "collection": "manuals", "error": "…"}
    )
    WebhookDelivery.objects.update(status=WebhookDelivery.Status.DONE, response_status=204)
    model = LanguageModel(name="tiny", base_url="https://models.example.org/v1", model="tiny", is_enabled=False)
    model.api_key = secrets["model"]
    model.save()

    call_command("backup", folder / "site.tar")
    facts = {
        "key": key,
        "secrets": secrets,
        "documents": dict(Document.objects.values_list("source", "status")),
        "conversation": answer["conversation"],
        "question": QUESTION,
        "answer": answer["answer"],
        "quote": answer["citations"][0]["quote"],  # type: ignore[index]
        "approved_question": APPROVED_QUESTION,
        "approved": APPROVED,
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def main() -> None:
    """Call :func:`make` in a process whose settings are the defaults, with an empty data directory."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    folder = RELEASES / version
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="ragsite-release-") as data_dir:
        own = {"DJANGO_SETTINGS_MODULE": "ragsite.settings", "DATA_DIR": data_dir, "RAGSITE_DOTENV": "false"}
        # The embedder of the suite.
        environment = {"PATH": os.environ["PATH"], **own, "EMBEDDING_MODEL": "all-MiniLM-L6-v2"}
        code = f"from pathlib import Path; from tests.support.release import make; make(Path({str(folder)!r}))"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    main()
