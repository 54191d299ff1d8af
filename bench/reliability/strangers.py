"""What a few strangers can take from everybody else: places, connections, password checks, searches.

.venv/bin/python -m bench.reliability.strangers [--port 8000] [searches passwords-24 passwords-50 questions connections]

The site has the settings that a site has that sets nothing, and a soft limit of 1,024 open files; a server that writes
an answer in 40 s plays the model.
Strangers and others are addresses of this machine, 127.0.0.x.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import resource
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from django.conf import settings

from bench import with_constants
from bench.reliability.running_site import RunningSite, running_site
from bench.reliability.tables import percentile
from bench.reporting import table
from tests.support.model_server import model_server

RATES = {
    "NUM_PROXIES": "0",
    **with_constants(
        REST_FRAMEWORK=settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_RATES": {"ask": "60/min", "search": "1000000/min"}}
    ),
}
STRANGER, OTHER = "127.0.0.2", "127.0.0.3"
PASSWORD = "the right password of somebody"


def send(
    port: int, address: str, method: str, path: str, body: object = None, name: str = "", seconds: float = 120.0
) -> tuple[int, dict[str, object], float]:
    """Status (0: nothing came in time), JSON and seconds of one request from ``address``."""
    started = time.monotonic()
    headers = {"Content-Type": "application/json"}
    if name:
        headers["Authorization"] = "Basic " + base64.b64encode(name.encode()).decode()
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds, source_address=(address, 0))
    try:
        line.request(method, path, None if body is None else json.dumps(body), headers)
        response = line.getresponse()
        text = response.read()
    except (OSError, http.client.HTTPException):
        return 0, {}, time.monotonic() - started
    finally:
        line.close()
    is_json = response.headers.get_content_type() == "application/json"
    return response.status, json.loads(text) if is_json else {}, time.monotonic() - started


def flood_with_questions(site: RunningSite) -> list[str]:
    """48 streamed questions of one address, and one of another."""

    def ask(number: int) -> int:
        body = {"question": f"How many days of holiday are there in year {number}?", "stream": True, "anew": True}
        return send(site.port, STRANGER, "POST", "/api/v1/ask/", body, seconds=60)[0]

    with ThreadPoolExecutor(48) as strangers:
        asked = [strangers.submit(ask, number) for number in range(48)]
        time.sleep(8)
        started = time.monotonic()
        body = {"question": "How many days of holiday do I have?", "anew": True}
        status, _body, _seconds = send(site.port, OTHER, "POST", "/api/v1/ask/", body, seconds=100)
        waited = time.monotonic() - started
        refused = Counter(each.result() for each in asked)
    return [
        "48 questions",
        f"refused {refused[429] + refused[503]}",
        f"another's answer: {status} after {waited:.0f} s",
    ]


def hold_connections(site: RunningSite) -> list[str]:
    """3,500 connections of one address with unfinished headers, and pages for another, for half a minute."""
    pages: list[tuple[int, float]] = []
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    with ExitStack() as lines:
        for _ in range(3500):
            try:
                line = socket.create_connection(("127.0.0.1", site.port), 2, (STRANGER, 0))
                lines.enter_context(line)
                line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            except OSError:
                continue
        until = time.monotonic() + 30
        while time.monotonic() < until:
            status, _body, seconds = send(site.port, OTHER, "GET", "/healthz", seconds=5)
            pages.append((status, seconds))
            time.sleep(0.5)
    good = sum(status == 200 for status, _seconds in pages)
    restarted = site.log.read_text(errors="replace").count("has not answered")
    slowest = max(seconds for _status, seconds in pages)
    return ["3,500 connections", f"killed {restarted}", f"pages {good} of {len(pages)}, slowest {slowest:.1f} s"]


def guess_passwords(site: RunningSite, addresses: int) -> list[str]:
    """Wrong passwords from many addresses, without a pause, and somebody who signs in from a usual and a new place."""
    end = time.monotonic() + 40
    tried: Counter[int] = Counter()

    def guess(address: str) -> None:
        number = 0
        while time.monotonic() < end:
            number += 1
            tried[send(site.port, address, "GET", "/api/v1/conversations/", name=f"guess{number}:wrong")[0]] += 1

    def sign_in(address: str) -> int:
        return send(site.port, address, "GET", "/api/v1/conversations/", name=f"somebody:{PASSWORD}")[0]

    usual = f"127.1.{addresses}.1"
    sign_in(usual)
    with ThreadPoolExecutor(addresses) as strangers:
        for number in range(addresses):
            strangers.submit(guess, f"127.2.{addresses}.{number + 1}")
        time.sleep(4)
        known, new = Counter[int](), Counter[int]()
        for number in range(9):
            known[sign_in(usual)] += 1
            new[sign_in(f"127.3.{addresses}.{number + 1}")] += 1
    told = f"let in: usual place {known[200]} of 9, new place {new[200]} of 9"
    return [f"wrong passwords, {addresses} addresses", f"tried {dict(tried)}", told]


def flood_with_searches(site: RunningSite) -> list[str]:
    """384 searches, 120 at once, and pages for another meanwhile."""

    def search(number: int) -> tuple[int, bool]:
        status, body, _seconds = send(
            site.port, STRANGER, "POST", "/api/v1/search/", {"query": f"holiday days in year {number}"}
        )
        return status, bool(body.get("degraded"))

    pages = []
    with ThreadPoolExecutor(120) as strangers:
        found = [strangers.submit(search, number) for number in range(384)]
        while not all(each.done() for each in found):
            pages.append(send(site.port, OTHER, "GET", "/")[2])
            time.sleep(0.2)
    statuses = Counter(each.result()[0] for each in found)
    degraded = sum(each.result()[1] for each in found)
    told = f"degraded {degraded}, page p50 {percentile(pages, 50):.2f} s, most {max(pages):.2f} s"
    return ["384 searches, 120 at once", f"{dict(statuses)}", told]


ATTACKS: dict[str, Callable[[RunningSite], list[str]]] = {
    "searches": flood_with_searches,
    "passwords-24": partial(guess_passwords, addresses=24),
    "passwords-50": partial(guess_passwords, addresses=50),
    "questions": flood_with_questions,
    "connections": hold_connections,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("attacks", nargs="*", help="default: all", default=list(ATTACKS))
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with model_server() as model:
        model.pieces, model.delay_seconds = ["There are 25 days of holiday [1]. "] * 80, 0.5
        with running_site(given.port, **RATES, OPENAI_BASE_URL=model.url, OPENAI_MODEL="slow") as site:
            make_user = "from django.contrib.auth.models import User; "
            make_user += f"User.objects.create_user('somebody', password='{PASSWORD}')"
            shell: subprocess.Popen[str] = site.manage("shell", "-c", make_user)
            shell.communicate(timeout=120)
            rows = []
            for attack in given.attacks:
                rows.append(ATTACKS[attack](site))
                print(rows[-1], flush=True)
                time.sleep(5)
    print(table(["Strangers", "What they got", "Everybody else"], rows))


if __name__ == "__main__":
    main()
