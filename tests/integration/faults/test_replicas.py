"""A real streaming replica of the test's database: when a search may read from it, and when the primary answers."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat.models import Answer
from retrieval.documents import submission
from retrieval.models import Collection, Document
from tests.support.site import WebServer, wait_until
from tests.support.standby import standby

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]

REPLICA = "replica 1"


def ask(web: WebServer, method: str, path: str, body: Any = None) -> Any:
    asked = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
    asked.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    content = asked.getresponse().read()
    asked.close()
    return json.loads(content)


def found(web: WebServer, question: str) -> tuple[str, list[str]]:
    """The server that answered, and the titles of what it found."""
    answer = ask(web, "POST", "/api/v1/search/", {"query": question, "explain": True})
    assert answer.get("degraded") == [], answer
    return answer["trace"]["server"], [each["document"]["title"] for each in answer["results"]]


def trouble(web: WebServer) -> str:
    """What `/readyz` says of the replicas, which keeps nobody from asking."""
    told = ask(web, "GET", "/readyz")
    assert told["status"] != "unavailable"
    return str(told["checks"]["replicas"]["detail"])


def test_searches_read_from_a_replica_that_holds_what_matters(
    collection: Collection, ingest: Callable[..., Document], server_folder: Path, tmp_path: Path
) -> None:
    ingest(collection, "salaries.txt", "The director earns ninety thousand euros a year.", title="Salaries")
    with standby(server_folder) as replica:
        web = WebServer(
            tmp_path / "web.log",
            DATABASE_REPLICA_URLS=replica.url,
        )
        try:
            replica.replay()
            assert found(web, "What does the director earn?") == (REPLICA, ["Salaries"])
            ask(web, "POST", "/api/v1/ask/", {"question": "What does the director earn?"})
            answer = Answer.objects.get()
            assert (answer.status, answer.trace["server"]) == (Answer.Status.COMPLETED, REPLICA)
            assert trouble(web) == ""

            # It replays no more. What was added is found all the same, and what was narrowed is not.
            replica.execute("SELECT pg_wal_replay_pause()")
            ingest(collection, "parking.txt", "The garage opens at six in the morning.", title="Parking")
            server, titles = found(web, "When does the garage open?")
            assert server == "primary (replica 1 has not replayed the latest changes yet)"
            assert titles[0] == "Parking"
            replica.execute("SELECT pg_wal_replay_resume()")
            replica.replay()
            server, titles = found(web, "When does the garage open?")
            assert (server, titles[0]) == (REPLICA, "Parking")
            replica.execute("SELECT pg_wal_replay_pause()")
            submission.submit(collection, "salaries.txt", b"The director earns more.", metadata={"groups": ["board"]})
            server, titles = found(web, "What does the director earn?")
            assert server.startswith("primary (")
            assert "Salaries" not in titles
            # Too far behind for anything.
            behind = "more than 5 s behind"
            wait_until(lambda: behind in found(web, "When does the garage open?")[0], 30, "the bound")
            assert behind in trouble(web)
            replica.execute("SELECT pg_wal_replay_resume()")
            replica.replay()
            server, titles = found(web, "What does the director earn?")
            assert server == REPLICA
            assert "Salaries" not in titles

            with replica.frozen():
                assert found(web, "When does the garage open?")[0] == "primary (replica 1 does not answer)"
            wait_until(lambda: found(web, "When does the garage open?")[0] == REPLICA, 30, "the replica")

            replica.kill()
            assert found(web, "When does the garage open?") == ("primary (replica 1 does not answer)", ["Parking"])
            assert trouble(web) == "Other servers answer its searches: replica 1 does not answer."
            replica.start()
            wait_until(lambda: found(web, "When does the garage open?") == (REPLICA, ["Parking"]), 30, "the replica")
            assert trouble(web) == ""
        finally:
            web.stop()
    log = web.log.read_text()
    assert "Searches do not read from replica 1, which does not answer" in log
    assert "Searches read from replica 1 again." in log
