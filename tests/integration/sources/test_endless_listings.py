"""A server with an endless listing: the run stops at the first page without new items, or at its time limit."""

import json
import time
from collections.abc import Callable

import pytest

from retrieval.sources import comparing
from tests.support.sources import WebServer, make_source, run_once

pytestmark = pytest.mark.django_db


def confluence(number, keys):
    results = [{"id": key, "title": key, "version": {"number": 1}} for key in keys]
    return json.dumps({"results": results, "_links": {"next": f"/rest/api/content/search?start={number}"}})


def mediawiki(number, keys):
    pages = [{"pageid": key, "title": key, "lastrevid": 1} for key in keys]
    return json.dumps({"query": {"pages": pages}, "continue": {"gapcontinue": str(number)}})


def s3(number, keys):
    entries = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
    token = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{number}</NextContinuationToken>"
    return f"<ListBucketResult>{entries}{token}</ListBucketResult>"


KINDS = {
    "confluence": (confluence, {"url": "{}", "space": "DOC"}),
    "mediawiki": (mediawiki, {"url": "{}/api.php", "namespace": "0"}),
    "s3": (s3, {"endpoint": "{}", "region": "us-east-1", "bucket": "shelf"}),
}


class EndlessServer(WebServer):
    """Each page names a following one. ``keys`` returns the keys of a page by its number, from 0."""

    say: Callable[[int, list[str]], str]
    keys: Callable[[int], list[str]]

    def answer(self, request):
        time.sleep(0.05)
        number = len(self.requests)
        request.send(self.say(number, self.keys(number - 1)).encode())


@pytest.fixture
def server():
    made = EndlessServer()
    yield made
    made.close()


@pytest.fixture
def source(kind, server, collection):
    server.say, options = KINDS[kind]
    return make_source(collection, kind, {name: each.format(server.url) for name, each in options.items()})


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("confluence", lambda number: ["1", "2"] if number == 0 else []),
        ("mediawiki", lambda number: ["1", "2"]),
        ("s3", lambda number: [["1", "2"], ["3"], ["2", "3"]][min(number, 2)]),
    ],
    ids=["empty", "repeated", "mixed"],
)
def test_a_page_with_nothing_new_ends_the_run(source, server, keys, monkeypatch):
    monkeypatch.setattr(comparing, "LISTING_SECONDS", 5.0)
    server.keys = keys
    run = run_once(source)
    assert (run.status, "does not end" in run.error) == ("failed", True), run.error
    assert len(server.requests) <= 3


@pytest.mark.parametrize("kind", ["s3"])
def test_a_listing_of_ever_new_pages_ends_in_time(source, server, monkeypatch):
    # Folders of S3, and what the patterns leave out elsewhere, are no items that the run sees.
    monkeypatch.setattr(comparing, "LISTING_SECONDS", 1.0)

    def keys(number):
        time.sleep(20 if number == 5 else 0)
        return [f"{number}/"]

    server.keys = keys
    started = time.monotonic()
    run = run_once(source)
    assert (run.status, "Listing it takes longer" in run.error) == ("waiting", True), run.error
    assert time.monotonic() - started < 10
