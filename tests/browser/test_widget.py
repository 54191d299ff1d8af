"""The widget on another site: its frame answers there, and on no site that is not named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.browser.conftest import Site

QUESTION = "Which seal kit fits the MX-9920-W?"


@pytest.fixture(scope="module")
def other_site(other_port: int) -> Iterator[Callable[[str], str]]:
    """``other_site(script)``: the address of another site's page, which holds one script tag and a strict policy."""
    pages: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            self.send_response(200 if page else 204)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            origins = "http://127.0.0.1:* http://localhost:*"
            self.send_header(
                "Content-Security-Policy", f"default-src 'none'; script-src {origins}; frame-src {origins}"
            )
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", other_port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def serve(script: str) -> str:
        head = "<!doctype html><html lang=en><title>Pumps</title><meta name=viewport content=width=device-width>"
        pages["/"] = f"{head}<main><h1>Pumps</h1></main>{script}</html>".encode()
        # Another host is another site than that of the frame.
        return f"http://localhost:{server.server_port}"

    yield serve
    server.shutdown()
    server.server_close()


def open_widget(page: Page, address: str) -> FrameLocator:
    page.goto(address)
    page.get_by_role("button", name="Ask us").click()
    return page.frame_locator("iframe")


def test_a_reader_of_another_site_asks_there(site: Site, other_site: Callable[[str], str], page: Page) -> None:
    # Signed in on the site itself: the widget asks without an account all the same.
    site.sign_in(page)
    script = f'<script src="{site.url}/widget.js" data-collection="parts" data-label="Ask us" async></script>'
    address = other_site(script)
    page.goto(address)
    expect(page.locator("iframe")).to_be_hidden()
    frame = open_widget(page, address)
    expect(frame.get_by_role("heading", name="Ask us")).to_be_visible()
    frame.get_by_label("Your question").fill(QUESTION)
    frame.get_by_label("Your question").press("Enter")
    answer = frame.locator(".answer.is-complete")
    expect(answer).to_contain_text("SK-9920-W")
    with page.expect_popup() as opened:
        frame.locator(".cite a").first.click()
    expect(opened.value.locator("#passage")).to_be_visible()
    opened.value.close()
    frame.get_by_label("Your question").fill("and for the DX-2210?")
    frame.get_by_role("button", name="Ask").click()
    expect(frame.locator(".turn")).to_have_count(2)
    expect(frame.locator(".turn").last.locator(".answer")).to_have_class("answer is-complete")

    def saved() -> None:
        from chat.models import Conversation

        conversation = Conversation.objects.latest("created_at")
        assert (conversation.owner, conversation.visitor, conversation.answers.count()) == (None, "", 2)
        assert conversation.collection is not None
        assert conversation.collection.slug == "parts"

    site.do(saved)
    page.get_by_role("button", name="Ask us").click()
    expect(page.locator("iframe")).to_be_hidden()
