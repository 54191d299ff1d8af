"""A language model that takes its time, and visitors who wait, stop it, reload, or go away."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from bench import with_constants
from chat.models import LanguageModel
from tests.browser.conftest import PHONE, Complaints, Site
from tests.browser.pages import answer_text, ask, begin_asking, is_too_wide, source, violations, words
from tests.support.model_server import ModelServer
from tests.support.proxy import TcpProxy

QUESTION = "Which seal kit fits the MX-9920-W?"
SLOW = "It takes longer than usual."
# However slow the machine is; nobody waits so long on one that is not.
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

# Every sentence the live region has said.
LISTENER = """
    window.said = [];
    document.addEventListener("DOMContentLoaded", () => {
      const live = document.getElementById("live");
      new MutationObserver(() => live.textContent && window.said.push(live.textContent))
        .observe(live, { childList: true, characterData: true, subtree: true });
    });
"""


def numbered(count: int) -> list[str]:
    return [f"word{number} " for number in range(count)] + ["[1]."]


def text_so_far(turn: Locator) -> str:
    return words("".join(turn.locator(".answer .prose").all_text_contents()))


def stop(turn: Locator, model: ModelServer) -> None:
    """End the writing, and leave the focus where it is."""
    turn.locator("[data-stop]").evaluate("form => form.requestSubmit()")
    expect(turn.locator(".answer")).to_have_class("answer is-stopped")
    # The next test begins with a model that nobody is about to leave.
    assert model.closed_early.wait(PATIENCE_SECONDS), "The model goes on writing for nobody."


def is_doubled(text: str) -> bool:
    found = re.findall(r"word\d+ ", text)
    return len(found) != len(set(found))


def seen_by(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate("window.seen")
    return found


def test_a_streamed_answer_grows_before_the_readers_eyes(model_site: Site, page: Page, model: ModelServer) -> None:
    model.pieces = [
        "You need ",
        "the **seal",
        " kit** SK-9920-W ",
        "for it.\n\n",
        "- It is made ",
        "of EPDM [9].\n",
        "- Done.",
    ]
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
    # What has been read does not go away again.
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


def test_a_citation_in_a_growing_answer_leads_to_its_source(model_site: Site, page: Page, model: ModelServer) -> None:
    model.pieces = ["The kit [1] ", *numbered(2000)]
    model.delay_seconds = 0.1
    page.goto(model_site.url)
    turn = begin_asking(page, QUESTION)
    turn.locator(".cite a").first.click()
    expect(source(turn, 1)).to_be_focused()
    expect(turn.locator(".answer")).to_have_class("answer is-streaming")
    expect(page).to_have_url(re.compile("/c/.*/$"))
    stop(turn, model)
    expect(source(turn, 1)).to_be_focused()


def test_sources_that_were_opened_stay_open_when_the_answer_ends(
    model_site: Site, visitor: Callable[..., Page], model: ModelServer
) -> None:
    page = visitor(**PHONE)
    model.pieces = numbered(2000)
    model.delay_seconds = 0.1
    page.goto(model_site.url)
    turn = begin_asking(page, QUESTION)
    toggle = turn.locator(".sources-toggle")
    toggle.press("Enter")
    expect(source(turn, 1)).to_be_visible()
    stop(turn, model)
    expect(toggle).to_have_attribute("aria-expanded", "true")
    expect(source(turn, 1)).to_be_visible()
    expect(toggle).to_be_focused()


def test_stop_ends_the_writing_and_keeps_the_text(model_site: Site, page: Page, model: ModelServer) -> None:
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


def test_a_reload_goes_on_where_the_answer_is(model_site: Site, page: Page, model: ModelServer) -> None:
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


def test_a_lost_connection_is_announced_and_taken_up_again(
    model_site: Site, page: Page, model: ModelServer, complaints: Complaints
) -> None:
    # Chromium and htmx report the loss in the console.
    complaints.expected += ["net::ERR_", "[object Event]"]
    model.pieces = numbered(60)
    model.delay_seconds = 0.06
    with TcpProxy(model_site.server.port) as proxy:
        page.add_init_script(RECORDER)
        page.goto(proxy.url)
        turn = begin_asking(page, QUESTION)
        expect(turn.locator(".answer")).to_contain_text("word10")
        proxy.cut()
        expect(page.locator("#live")).to_have_text("The connection was lost. Trying again…")
        proxy.mend()
        expect(turn.locator(".answer")).to_have_class("answer is-complete")
        assert answer_text(turn).rstrip(".").split() == [f"word{number}" for number in range(60)]
    assert not any(is_doubled(state["text"]) for state in seen_by(page))
    assert len(model.requests) == 1


def test_closing_the_tab_stops_the_model(model_site: Site, page: Page, model: ModelServer) -> None:
    model.pieces = numbered(4000)
    model.delay_seconds = 0.1
    page.goto(model_site.url)
    turn = begin_asking(page, QUESTION)
    expect(turn.locator(".answer")).to_contain_text("word3")
    address = page.url
    context = page.context
    page.close()
    # The reader may come back for ten seconds; the model would write for minutes.
    assert model.closed_early.wait(PATIENCE_SECONDS), "The model goes on writing for nobody."
    page = context.new_page()
    page.goto(address)
    expect(page.locator(".answer")).to_have_class("answer is-stopped")
    assert answer_text(page.locator(".turn")).startswith("word0 word1 word2 word3")


def test_two_readers_of_one_answer_see_the_same(model_site: Site, page: Page, model: ModelServer) -> None:
    model.pieces = numbered(30)
    model.delay_seconds = 0.05
    page.goto(model_site.url)
    turn = begin_asking(page, QUESTION)
    expect(turn.locator(".answer")).to_contain_text("word3")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".answer")).to_have_class("answer is-complete")
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    assert answer_text(turn) == answer_text(other.locator(".turn"))
    assert len(model.requests) == 1


def test_a_long_wait_says_so_once_and_counts_the_seconds(model_site: Site, page: Page, model: ModelServer) -> None:
    model.pieces, model.delay_seconds = ["It is SK-9920-W [1]. ", "Done."], 30
    page.add_init_script(LISTENER)
    page.goto(model_site.url)
    turn = begin_asking(page, QUESTION)
    status = turn.locator(".answer > .progress")
    expect(status).to_contain_text("Writing the answer…")
    expect(status.locator("[data-elapsed]")).to_have_text(re.compile(r"^([3-9]|\d\d)\ss$"))
    expect(status).to_contain_text(SLOW)
    expect(status.locator("[data-elapsed]")).to_have_text(re.compile(r"^([89]|\d\d)\ss$"))
    assert page.evaluate("window.said").count(SLOW) == 1
    # The seconds are for the eyes: read aloud every second, they would drown everything else.
    assert not any(re.search(r"\d", said) for said in page.evaluate("window.said"))
    expect(status.locator("[data-elapsed]")).to_have_attribute("aria-hidden", "true")

    page.reload()
    expect(turn.locator(".answer > .progress [data-elapsed]")).to_have_text(re.compile(r"^([89]|\d\d)\ss$"))
    page.click("#stop")
    expect(turn.locator(".answer")).to_have_class("answer is-stopped")
    expect(turn.locator(".outcome")).to_contain_text("This answer was stopped before its first word.")


@pytest.fixture(scope="module")
def poor_site(start_site: Callable[..., Site], _model: ModelServer) -> Site:
    """A site whose settings name an embedding server that does not exist (the stored vectors are another's), and which
    writes one answer at a time, with room for one that waits."""
    return start_site(
        OPENAI_BASE_URL=_model.url,
        OPENAI_MODEL="tiny",
        EMBEDDING_BASE_URL="http://127.0.0.1:9/v1",
        EMBEDDING_MODEL="gone",
        ANSWERS_AT_ONCE="1",
        **with_constants(ANSWER_CACHE_SECONDS=0, ANSWERS_WAITING=1),
    )


def test_the_queue_shows_the_place_and_refuses_behind_its_end(
    poor_site: Site, model: ModelServer, visitor: Callable[..., Page], complaints: Complaints
) -> None:
    complaints.expected += ["503", "htmx:"]
    model.pieces = pieces = [f"word{number} " for number in range(4000)]
    model.delay_seconds = 0.05
    first, second, third = visitor(), visitor(), visitor()
    for page in (first, second, third):
        page.goto(poor_site.url)
    expect(begin_asking(first, QUESTION).locator(".answer")).to_contain_text("word1")
    waiting = begin_asking(second, QUESTION)
    expect(waiting.locator(".progress [data-announce]")).to_have_text("You are number 1 in the queue.")
    expect(second.locator("#live")).to_have_text("You are number 1 in the queue.")

    third.fill("#question", QUESTION)
    third.press("#question", "Enter")
    expect(third.locator("#question-error")).to_contain_text("Too many questions are being answered.")
    expect(third.locator("#question")).to_have_value(QUESTION)

    pieces[:] = ["It is SK-9920-W [1]."]
    first.click("#stop")
    expect(waiting.locator(".answer")).to_have_class("answer is-complete")
    turn = ask(third, QUESTION)
    expect(turn.locator(".cite").first).to_be_visible()
    expect(turn.locator(".notice")).to_have_text(
        "Search by meaning did not answer, so the passages were found by their words alone."
    )


def test_a_reader_chooses_the_model_and_has_an_answer_written_anew_by_another(
    model_site: Site, visitor: Callable[..., Page], model: ModelServer
) -> None:
    page = visitor(**PHONE)
    with model_site.data():
        LanguageModel.objects.create(name="mistral-small-24b", base_url=model.url, model="large-v2")
    try:
        page.goto(model_site.url)
        picker = page.locator(".composer").get_by_label("Language model")
        expect(picker).to_have_value("tiny")
        picker.select_option("mistral-small-24b")
        turn = ask(page, QUESTION)
        expect(turn.locator(".answer")).to_have_class("answer is-complete")
        assert model.requests[-1]["model"] == "large-v2"
        assert not is_too_wide(page)
        assert violations(page) == []
        page.reload()
        expect(picker).to_have_value("mistral-small-24b")
        anew = page.locator(".turn .actions").get_by_label("Language model")
        expect(anew).to_have_value("mistral-small-24b")
        anew.select_option("tiny")
        page.get_by_role("button", name="Ask anew").click()
        expect(page.locator(".turn")).to_have_count(2)
        again = page.locator(".turn:last-child")
        expect(again.locator(".answer")).to_have_class("answer is-complete")
        assert model.requests[-1]["model"] == "tiny"
        expect(again.locator(".actions").get_by_label("Language model")).to_have_value("tiny")
        expect(picker).to_have_value("mistral-small-24b")
    finally:
        with model_site.data():
            LanguageModel.objects.all().delete()
