"""Measure how soon an uploaded page can be searched: on an idle site, and while other jobs wait.

.venv/bin/python -m bench.reliability.uploads [--judgements 500] [--deliveries 100] [--questions 60] [--port 8236]

The jobs are judgements, and deliveries to a receiver that does not respond. Then one visitor asks many questions.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from statistics import median

from bench.reliability.running_site import RunningSite, format_seconds, generate_distinct_questions, running_site
from bench.reporting import format_markdown_table
from tests.support.serving import QuietHandler, serving

READY_WITHIN_SECONDS, MOST_RATIO = 5.0, 2.0
UPLOADS = 5
LOOK_SECONDS = 0.02


def build_numbered_page(number: int) -> bytes:
    sentences = (f"Valve {number}-{each} closes at {each + 3} bar and is oiled once a year." for each in range(40))
    return f"# Valve {number}\n\n{' '.join(sentences)}".encode()


class UploadTimer:
    def __init__(self, site: RunningSite, key: str) -> None:
        self._site, self._key, self._number = site, key, 0

    def measure_uploads(self, number: int = UPLOADS) -> list[float]:
        """Return for each upload the seconds from the first byte of the request until the upload can be searched."""
        return [self._measure_one() for _ in range(number)]

    def _measure_one(self) -> float:
        from retrieval.models import Document

        self._number += 1
        name = f"valve-{self._number}.md"
        started = time.monotonic()
        reply = self._site.upload("uploads", name, build_numbered_page(self._number), self._key)
        if reply.status != 202:
            raise SystemExit(f"The upload was refused: {reply}")
        while not Document.objects.filter(source=name, status=Document.Status.READY).exists():
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - started


def queue_judgements(number: int) -> None:
    from chat.models import Answer
    from core.job_queue import enqueue
    from evaluation.models import Judgement

    answer = Answer.objects.filter(status=Answer.Status.COMPLETED).latest("pk")
    made = []
    for _ in range(number):
        answer.pk, answer._state.adding = None, True
        answer.save()
        made.append(Judgement.objects.create(answer=answer, judge=Judgement.Judge.OFFLINE).pk)
    enqueue(Judgement, made)


def queue_deliveries(number: int, url: str) -> None:
    from retrieval.models import Webhook
    from retrieval.models.webhook import announce_event
    from retrieval.webhooks import new_secret

    event = Webhook.Event.DOCUMENT_FAILED
    webhook = Webhook(address=url, events=[event])
    webhook.set_secret(new_secret())
    webhook.save()
    for each in range(number):
        announce_event(event, {"document": each})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=500)
    parser.add_argument("--deliveries", type=int, default=100)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--port", type=int, default=8236)
    given = parser.parse_args()
    ended = threading.Event()

    class HangingHandler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - its name in the library
            ended.wait()

    rows: list[tuple[str, list[float], int]] = []
    with serving(HangingHandler) as url, running_site(given.port, SOURCE_PRIVATE_HOSTS="127.0.0.1") as site:
        from django.contrib.auth import get_user_model

        from core.key_limits import KeyScope
        from evaluation.models import Judgement
        from ragsite.accounts.keys import issue_key
        from retrieval.models import Collection, Visibility

        Collection.objects.create(slug="uploads", name="Uploads", visibility=Visibility.PUBLIC)
        key = issue_key(get_user_model().objects.create_superuser("uploads"), "uploads", list(KeyScope)).secret
        uploads, questions = UploadTimer(site, key), generate_distinct_questions("uploads ")
        waiting = Judgement.objects.filter(status=Judgement.QUEUED)

        def ask_question() -> None:
            site.post("/api/v1/ask/", {"question": next(questions)})

        def record_uploads(situation: str, number: int = UPLOADS) -> None:
            rows.append((situation, uploads.measure_uploads(number), waiting.count()))

        ask_question()
        uploads.measure_uploads(4)
        site.wait(lambda: not waiting.exists(), 120)
        record_uploads("alone")
        for _ in range(given.questions):
            ask_question()
        record_uploads(f"after {given.questions} questions of one visitor", 1)
        site.wait(lambda: not waiting.exists(), 600)
        queue_judgements(given.judgements)
        queue_deliveries(given.deliveries, f"{url}/")
        record_uploads(f"{given.judgements} judgements and {given.deliveries} deliveries to a receiver that hangs")
        print(f"Load {os.getloadavg()[0]:.1f}. {site.get('/readyz').body}\n")
        ended.set()
    alone = median(rows[0][1])
    cells = [
        [situation, format_seconds(median(took)), format_seconds(max(took)), f"{median(took) / alone:.1f}", left]
        for situation, took, left in rows
    ]
    print(format_markdown_table(["an upload of one page", "p50", "longest", "ratio", "judgements left then"], cells))
    are_quick = all(max(took) <= READY_WITHIN_SECONDS and median(took) <= MOST_RATIO * alone for _, took, _ in rows)
    raise SystemExit(0 if are_quick else 1)


if __name__ == "__main__":
    main()
