"""A language model that takes its time, and visitors who wait, stop it, reload, or go away."""

import contextlib
import re
import socket
import socketserver
import threading
from itertools import groupby, pairwise

from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.pages import answer_text, ask, begin_asking, source, words


def _pass_on(source, sink):
    with contextlib.suppress(OSError):
        while received := source.recv(65536):
            sink.sendall(received)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class TcpProxy(socketserver.ThreadingTCPServer):
    """Passes connections on to a local port; while ``is_cut`` none is taken."""

    daemon_threads = True
    is_cut = False

    def __init__(self, target):
        super().__init__(("127.0.0.1", 0), None)
        self._target = target
        self._open = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def finish_request(self, request, _address):
        if not self.is_cut:
            far = socket.create_connection(("127.0.0.1", self._target))
            self._open += [request, far]
            threading.Thread(target=_pass_on, args=(request, far), daemon=True).start()
            _pass_on(far, request)

    def cut(self):
        self.is_cut = True
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


QUESTION = "Which seal kit fits the MX-9920-W?"
SLOW = "It takes longer than usual."
# The limit is for slow machines; fast ones do not reach it.
PATIENCE_SECONDS = 60
# Notes every state of the newest turn that a reader could have seen.
RECORDER = """
    window.seen = [];
    const note = () => {
      const turn = document.querySelector(".turn:last-child");
      if (!turn) return;
      const text = [...turn.querySelectorAll(".answer .prose")].map(node => node.textContent).join("");
      const state = {
        text, sources: turn.querySelectorAll(".source").length, live: document.getElementById("live").textContent,
        streaming: turn.querySelector(".answer").classList.contains("is-streaming"),
      };
      const last = window.seen.at(-1);
      if (!last || Object.keys(state).some(key => state[key] !== last[key])) window.seen.push(state);
    };
    document.addEventListener("DOMContentLoaded", () => {
      new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
      note();
    });
"""


def numbered(count):
    return [f"word{number} " for number in range(count)] + ["[1]."]


def stop(turn, model):
    """End the writing, and leave the focus where it is."""
    turn.locator("[data-stop]").evaluate("form => form.requestSubmit()")
    expect(turn.locator(".answer")).to_have_class("answer is-stopped")
    # The next test begins with a model that no reader is about to leave.
    assert model.closed_early.wait(PATIENCE_SECONDS), "The model goes on writing for nobody."


def is_doubled(text):
    found = re.findall(r"word\d+ ", text)
    return len(found) != len(set(found))


def seen_by(page):
    return page.evaluate("window.seen")


def test_a_streamed_answer_grows_before_the_readers_eyes(model_site, page, model):
    model.pieces = [
        "You need ", "the **seal", " kit** SK-9920-W ", "for it.\n\n", "- It is made ", "of EPDM [9].\n", "- Done.",
    ]  # fmt: skip
    model.delay_seconds = 0.15
    page.add_init_script(RECORDER)
    page.goto(model_site.url)
    turn = ask(page, QUESTION)

    states = seen_by(page)
    streaming = [state for state in states if state["streaming"]]
    # The sources are there before the first word.
    assert any(state["sources"] > 0 and not state["text"].strip() for state in streaming)
    assert all(state["sources"] > 0 for state in streaming if state["text"].strip())
    lengths = [len(words(state["text"])) for state in streaming]
    assert len(set(lengths)) >= 4
    # Text that was shown does not disappear again.
    assert all(later >= earlier - 3 for earlier, later in pairwise(lengths))
    assert not any("**" in state["text"] for state in streaming)

    said = list(dict.fromkeys(state["live"] for state in states if state["live"] not in ("", SLOW)))
    assert said[:2] == ["Searching the documents…", "Writing the answer…"]
    assert said[2].startswith("Answer complete.")
    assert len(said) == 3

    expect(turn.locator("[data-answer-text] strong")).to_have_text("seal kit")
    expect(turn.locator("[data-answer-text] li")).to_have_count(2)
    assert turn.locator(".cite a").all_text_contents()[0].isdigit()
    for link in turn.locator(".cite a").all():
        assert re.fullmatch(r"/documents/\d+/\?start=\d+&end=\d+#passage", link.get_attribute("href") or "")
    assert len(model.requests) == 1


def test_while_an_answer_grows_a_citation_leads_to_its_source(model_site, visitor, model):
    page = visitor(**PHONE)
    model.pieces = ["The seal kit SK-9920-W is for the MX-9920-W [1].\n\n", *numbered(2000)]
    model.delay_seconds = 0.1
    page.goto(model_site.url)
    turn = begin_asking(page, QUESTION)
    turn.locator(".cite a").first.click()
    expect(source(turn, 1)).to_be_focused()
    expect(page).to_have_url(re.compile("/c/.*/$"))
    stop(turn, model)
    expect(source(turn, 1)).to_be_visible()


def test_stop_ends_the_writing_and_keeps_the_text(model_site, page, model):
    model.pieces = numbered(4000)
    model.delay_seconds = 0.05
    page.goto(model_site.url)
    expect(page.locator("#stop")).to_be_hidden()
    turn = begin_asking(page, QUESTION)
    expect(turn.locator(".answer")).to_contain_text("word6")
    page.click("#stop")
    expect(turn.locator(".answer")).to_have_class("answer is-stopped")
    expect(turn.locator(".outcome")).to_contain_text("This answer was stopped before its end.")
    expect(page.locator("#live")).to_have_text("The answer was stopped.")
    expect(page.locator("#stop")).to_be_hidden()
    text = answer_text(turn)
    count = len(text.split())
    assert 7 <= count < 2000
    assert words(text) == " ".join(f"word{number}" for number in range(count))
    assert model.closed_early.wait(PATIENCE_SECONDS), "The model goes on writing for nobody."
    page.reload()
    assert answer_text(page.locator(".turn")) == text
    assert len(model.requests) == 1

    model.pieces, model.delay_seconds = numbered(3), 0.0
    page.get_by_role("button", name="Ask again").click()
    again = page.locator(".turn").nth(1)
    expect(again.locator(".answer")).to_have_class("answer is-complete")
    assert words(answer_text(again)) == "word0 word1 word2."


def test_a_reload_goes_on_where_the_answer_is(model_site, page, model):
    model.pieces = pieces = numbered(4000)
    model.delay_seconds = 0.06
    page.goto(model_site.url)
    turn = begin_asking(page, QUESTION)
    expect(turn.locator(".answer")).to_contain_text("word10")
    page.add_init_script(RECORDER)
    page.reload()
    for later in ("word20", "word30", "word40"):
        expect(page.locator(".answer")).to_contain_text(later)
    # The model has said all that it had to say.
    pieces.clear()
    turn = page.locator(".turn")
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    found = answer_text(turn).split()
    assert len(found) > 10
    assert found == [f"word{number}" for number in range(len(found))]
    streamed = [state["text"] for state in seen_by(page) if state["streaming"] and state["text"]]
    assert streamed
    assert not any(is_doubled(text) for text in streamed)
    assert len(model.requests) == 1


def test_a_lost_connection_is_announced_and_taken_up_again(model_site, page, model, complaints):
    # Chromium and htmx report the loss in the console.
    complaints.expected += ["net::ERR_", "[object Event]"]
    model.pieces = numbered(60)
    model.delay_seconds = 0.06
    proxy = TcpProxy(model_site.server.port)
    page.add_init_script(RECORDER)
    page.goto(f"http://127.0.0.1:{proxy.server_address[1]}")
    turn = begin_asking(page, QUESTION)
    expect(turn.locator(".answer")).to_contain_text("word10")
    proxy.cut()
    expect(page.locator("#live")).to_have_text("The connection was lost. Trying again…")
    proxy.is_cut = False
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    proxy.shutdown()
    assert answer_text(turn).rstrip(".").split() == [f"word{number}" for number in range(60)]
    assert not any(is_doubled(state["text"]) for state in seen_by(page))
    assert len(model.requests) == 1


def test_a_long_wait_says_so_once_and_counts_the_seconds(model_site, page, model):
    model.pieces, model.delay_seconds = ["It is SK-9920-W [1]. ", "Done."], 30
    page.add_init_script(RECORDER)
    page.goto(model_site.url)
    turn = begin_asking(page, QUESTION)
    status = turn.locator(".answer > .progress")
    expect(status).to_contain_text("Writing the answer…")
    expect(status).to_contain_text(SLOW)
    expect(status.locator("[data-elapsed]")).to_have_text(re.compile(r"^([3-9]|\d\d)\ss$"))
    said = [sentence for sentence, _states in groupby(state["live"] for state in seen_by(page))]
    assert said.count(SLOW) == 1
    # The seconds are for the eyes: read aloud every second, they would drown everything else.
    assert not any(re.search(r"\d", sentence) for sentence in said)
    page.click("#stop")
    expect(turn.locator(".answer")).to_have_class("answer is-stopped")
    expect(turn.locator(".outcome")).to_contain_text("This answer was stopped before its first word.")
