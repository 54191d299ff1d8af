"""Measure how soon a visitor sees the front page over a slow line.

``python -m bench.front_page http://127.0.0.1:8000`` needs a running site and Chromium.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from typing import Any

from playwright.sync_api import Browser, sync_playwright

BITS_A_SECOND = 1_600_000
LATENCY_MS = 150
VISITS = 7
WINDOWS = {"wide": (1440, 900), "phone": (390, 844)}
_OBSERVE = """
    window.paints = [];
    new PerformanceObserver(list => window.paints.push(...list.getEntries().map(entry => entry.startTime)))
        .observe({type: "largest-contentful-paint", buffered: true});
"""
_SETTLED_MS = 1500
_CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser")


def measure_page_load(browser: Browser, address: str, width: int, height: int) -> tuple[float, int]:
    """Return the milliseconds to the largest contentful paint and the bytes received, without a cache."""
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.add_init_script(_OBSERVE)
    line = context.new_cdp_session(page)
    received: list[int] = []

    def record_received_bytes(event: dict[str, Any]) -> None:
        received.append(int(event["encodedDataLength"]))

    line.on("Network.loadingFinished", record_received_bytes)
    line.send("Network.enable")
    speed = BITS_A_SECOND / 8
    conditions = {"offline": False, "latency": LATENCY_MS, "downloadThroughput": speed, "uploadThroughput": speed}
    line.send("Network.emulateNetworkConditions", conditions)
    page.goto(address)
    page.wait_for_timeout(_SETTLED_MS)
    [*_, last] = page.evaluate("window.paints")
    context.close()
    return float(last), sum(received)


def main(address: str) -> None:
    with sync_playwright() as playwright:
        installed = next(filter(None, map(shutil.which, _CHROMIUMS)), None)
        browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        for name, (width, height) in WINDOWS.items():
            visits = [measure_page_load(browser, address, width, height) for _ in range(VISITS)]
            times = [milliseconds for milliseconds, _ in visits]
            print(
                f"{name}: largest contentful paint {statistics.median(times):.0f} ms (at most {max(times):.0f}), "
                f"{visits[0][1]:,} bytes, {BITS_A_SECOND / 1e6} Mbit/s, {LATENCY_MS} ms latency, {VISITS} visits"
            )
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
