"""The widget on another site: its frame answers there, and on no site that is not named."""

import pytest
from playwright.sync_api import expect

from tests.support.serving import QuietHandler, serving

QUESTION = "Which seal kit fits the MX-9920-W?"


@pytest.fixture(scope="module")
def other_site(site, other_port):
    """Return the address of another site, each page of which has one script tag and a strict policy."""
    script = f'<script src="{site.url}/widget.js" data-collection="parts" data-label="Ask us" async></script>'
    html = f"<!doctype html><html lang=en><title>Pumps</title><main><h1>Pumps</h1></main>{script}</html>"
    policy = f"default-src 'none'; script-src {site.url}; frame-src {site.url}"

    class Handler(QuietHandler):
        def do_GET(self):
            self.send(html.encode(), Content_Type="text/html", Content_Security_Policy=policy)

    with serving(Handler, other_port):
        # The frame's site has another host, so this is another site.
        yield f"http://localhost:{other_port}"


def test_no_question_is_typed_before_the_script_can_send_it(site, other_site, page):
    held = []
    page.route("**/widget_frame*.js", lambda route: held.append(route))
    page.goto(other_site)
    page.get_by_role("button", name="Ask us").click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_label("Your question")).to_be_disabled()
    expect(frame.get_by_role("button", name="Ask")).to_be_disabled()
    held.pop().continue_()
    frame.get_by_label("Your question").fill(QUESTION)
    frame.get_by_role("button", name="Ask").click()
    expect(frame.locator(".answer.is-complete")).to_contain_text("SK-9920-W")


def test_a_reader_of_another_site_asks_there(site, other_site, page):
    # Signed in on the site itself: the widget asks without an account all the same.
    site.sign_in(page)
    page.goto(other_site)
    expect(page.locator("iframe")).to_be_hidden()
    page.get_by_role("button", name="Ask us").click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Ask us")).to_be_visible()
    frame.get_by_label("Your question").fill(QUESTION)
    frame.get_by_label("Your question").press("Enter")
    expect(frame.locator(".answer.is-complete")).to_contain_text("SK-9920-W")
    with page.expect_popup() as opened:
        frame.locator(".cite a").first.click()
    expect(opened.value.locator("#passage")).to_be_visible()
    opened.value.close()
    frame.get_by_label("Your question").fill("and for the DX-2210?")
    frame.get_by_role("button", name="Ask").click()
    expect(frame.locator(".turn")).to_have_count(2)
    expect(frame.locator(".turn").last.locator(".answer")).to_have_class("answer is-complete")

    def saved():
        from chat.models import Conversation

        conversation = Conversation.objects.latest("created_at")
        assert (conversation.owner, conversation.visitor, conversation.answers.count()) == (None, "", 2)
        assert conversation.collection.slug == "parts"

    site.do(saved)
    page.get_by_role("button", name="Ask us").click()
    expect(page.locator("iframe")).to_be_hidden()
