"""Simulate many users of a site: they upload, ask questions and publish drafts (unpublished copies).

Everything that the site acknowledges is recorded for later checks.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import httpx2
from django.db import Error, connections

from bench.reliability.running_site import RunningSite, generate_distinct_questions
from chat.models import Answer
from core.exceptions import RagsiteError
from retrieval.documents.drafts import lifecycle
from retrieval.documents.submission import submit
from retrieval.models import Collection, Document, Draft, Visibility

UPLOADED, DRAFTED = "soak", "soak-drafts"
SOURCES = 150
UPLOAD_PAUSE_SECONDS, ASK_PAUSE_SECONDS, DRAFT_PAUSE_SECONDS = 4.0, 1.0, 0.5
# A killed process of the site causes these errors. The next round continues with what is in the database.
_PASSING = (Error, RagsiteError, OSError)


@dataclass
class SubmissionLedger:
    """A record of the documents and questions that were sent, and of the site's acknowledgements.

    ``versions`` maps each document's name to the content hashes that the site may have stored: the hash that it
    acknowledged last, and all hashes that were sent later.
    """

    versions: dict[str, list[str]] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)


@contextmanager
def fresh_connection() -> Iterator[None]:
    """Run the block with new database connections, because the previous server processes may have been killed."""
    connections.close_all()
    try:
        yield
    finally:
        connections.close_all()


class SiteLoad:
    def __init__(self, site: RunningSite, key: str, seed: int) -> None:
        self.ledger = SubmissionLedger()
        self.met: Counter[str] = Counter()
        self._site = site
        self._key = key
        self._random = Random(seed)
        self._stopped = threading.Event()
        self._expected: dict[int, dict[str, str]] = {}
        self._edited: set[int] = set()
        self._threads = [
            threading.Thread(target=self._repeat, args=(step, pause), daemon=True)
            for step, pause in (
                (self._upload, UPLOAD_PAUSE_SECONDS),
                (self._make_asker(stream=False), ASK_PAUSE_SECONDS),
                (self._make_asker(stream=True), ASK_PAUSE_SECONDS),
                (self._take_next_draft_step, DRAFT_PAUSE_SECONDS),
            )
        ]

    @fresh_connection()
    def start(self) -> None:
        for slug in (UPLOADED, DRAFTED):
            Collection.objects.get_or_create(slug=slug, defaults={"name": slug, "visibility": Visibility.PUBLIC})
        for number in range(3):
            submit(Collection.objects.get(slug=DRAFTED), f"first-{number}.txt", self._make_text(2))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(180)

    def _repeat(self, step: Callable[[], None], pause_seconds: float) -> None:
        while not self._stopped.wait(pause_seconds):
            try:
                with fresh_connection():
                    step()
            except _PASSING as error:
                self.met[f"{step.__name__.strip('_')}: {type(error).__name__}"] += 1
                self._stopped.wait(1.0)

    def _make_text(self, paragraphs: int) -> bytes:
        words = [f"pump{self._random.randrange(5000)}" for _ in range(paragraphs)]
        sentence = "The {} weighs {} grams and was checked in hall {}. "
        return "\n\n".join(
            "".join(sentence.format(word, self._random.randrange(9999), number) for number in range(10))
            for word in words
        ).encode()

    def _upload(self) -> None:
        name = f"soak-{self._random.randrange(SOURCES)}.txt"
        data = self._make_text(60 if self._random.random() < 0.2 else 4)
        told = hashlib.sha256(data).hexdigest()
        self.ledger.versions.setdefault(name, []).append(told)
        if self._site.upload(UPLOADED, name, data, self._key).status == 202:
            self.ledger.acknowledged.add(name)
            self.ledger.versions[name] = [told]

    def _make_asker(self, *, stream: bool) -> Callable[[], None]:
        questions = generate_distinct_questions("streamed " if stream else "plain ")

        def step() -> None:
            body = {"question": next(questions), "anew": True}
            answer = self._ask_streamed(body) if stream else self._site.post("/api/v1/ask/", body).body
            if answer and "answer_id" in answer:
                self.ledger.answers[answer["answer_id"]] = answer["answer"]

        return step

    def _ask_streamed(self, body: dict[str, object]) -> dict[str, str] | None:
        url = f"{self._site.url}/api/v1/ask/"
        try:
            with httpx2.stream("POST", url, json={**body, "stream": True}, timeout=60) as response:
                lines = response.iter_lines()
                for line in lines:
                    if line == "event: completed":
                        found: dict[str, str] = json.loads(next(lines).removeprefix("data: "))
                        return found
        except httpx2.HTTPError:
            return None
        return None

    def _take_next_draft_step(self) -> None:
        collection = Collection.objects.get(slug=DRAFTED)
        self._check_published_drafts()
        draft = Draft.objects.filter(collection=collection).filter_open().first()
        if draft is None:
            lifecycle.begin_draft(collection)
        elif draft.status == Draft.Status.OPEN and draft.working_copy is not None:
            documents = Document.objects.filter(collection=draft.working_copy)
            if draft.pk not in self._edited:
                if documents.count() > 3:
                    documents.order_by("pk")[self._random.randrange(3)].delete()
                submit(draft.working_copy, f"draft-{draft.pk}.txt", self._make_text(3))
                self._edited.add(draft.pk)
            elif not documents.exclude(status__in=["ready", "failed"]).exists():
                self._expected[draft.pk] = load_content_hashes(draft.working_copy)
                lifecycle.publish_draft(draft)

    def _check_published_drafts(self) -> None:
        for pk in list(self._expected):
            if Draft.objects.get(pk=pk).status == Draft.Status.PUBLISHED:
                expected = self._expected.pop(pk)
                if load_content_hashes(Collection.objects.get(slug=DRAFTED)) != expected:
                    self.ledger.violations.append(f"Draft {pk} is published, and its collection is another.")


def load_content_hashes(collection: Collection) -> dict[str, str]:
    return dict(Document.objects.filter(collection=collection).values_list("source", "content_hash"))


@fresh_connection()
def count_unfinished_rows() -> dict[str, int]:
    from evaluation.models import Judgement

    counts = {
        "documents": Document.objects.filter(status__in=["pending", "processing"]).count(),
        "answers": Answer.objects.filter(status__in=["pending", "generating"]).count(),
        "judgements": Judgement.objects.filter(status__in=["queued", "running"]).count(),
        "unjudged answers": Answer.objects.filter(status="completed", judgements=None).count(),
        "drafts": Draft.objects.filter(status__in=["copying", "publishing"]).count(),
    }
    return {kind: number for kind, number in counts.items() if number}
