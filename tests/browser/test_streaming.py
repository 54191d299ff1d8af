"""A language model that takes its time, and visitors who stop it, reload, or go away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from chat.models import LanguageModel, ModelTrial
from tests.browser.conftest import PHONE, Complaints, Site
from tests.browser.pages import answer_text, ask, begin_asking, is_too_wide, source, violations, words
from tests.browser.test_answer_forms import keep
from tests.support.model_server import ModelServer, call_pieces
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


def test_a_failing_model_is_announced_and_the_documents_answer(
    model_site: Site, page: Page, model: ModelServer
) -> None:
    model.statuses = [401]
    page.goto(model_site.url)
    turn = ask(page, QUESTION)
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    expect(turn.locator(".notice")).to_have_text(
        "The language model did not answer. This answer is quoted from the documents instead."
    )
    assert "SK-9920-W" in answer_text(turn)
    expect(turn.locator(".cite a").first).to_be_visible()


def test_a_model_that_breaks_off_leaves_no_half_answer(model_site: Site, page: Page, model: ModelServer) -> None:
    model.pieces = numbered(20)
    model.break_after = 8
    model.delay_seconds = 0.05
    page.goto(model_site.url)
    turn = ask(page, QUESTION)
    expect(turn.locator(".notice")).to_contain_text("The language model did not answer.")
    assert "word0" not in answer_text(turn)
    assert "SK-9920-W" in answer_text(turn)


def test_a_model_that_gives_up_is_answered_by_the_passage(model_site: Site, page: Page, model: ModelServer) -> None:
    model.pieces = ["The sources do not ", "mention the seal kit."]
    page.goto(model_site.url)
    turn = ask(page, QUESTION)
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    expect(turn.locator(".notice")).to_contain_text("The language model found no answer in these passages.")
    assert "SK-9920-W" in answer_text(turn)


def test_a_row_that_the_model_asks_a_table_for_gets_a_source_card(
    model_site: Site, page: Page, model: ModelServer
) -> None:
    class LastTold(list[str]):
        """The model's words, with the marker that it was told of last."""

        def __iter__(self) -> Iterator[str]:
            told = model.requests[-1]["messages"][-1]["content"]
            marker = told[told.index("sources [") :].split("]")[0].rpartition("[")[2]
            return iter(["The MX-9960-D weighs 34200 g [", f"{marker}]."])

    with model_site.data():
        passed = {"uses_functions": True, "tried_at": timezone.now()}
        ModelTrial.objects.update_or_create(model=f"tiny at {model.url}", defaults=passed)
    model.rounds = [call_pieces('{"question": "How heavy is the MX-9960-D?"}')]
    model.pieces = LastTold()
    page.goto(model_site.url)
    turn = ask(page, QUESTION)
    link = turn.locator(".cite a")
    expect(link).to_have_count(1)
    card = source(turn, int(link.inner_text()))
    expect(card.locator(".source-quote")).to_contain_text("34200")
    # It stands behind the sources that were found first.
    assert model.requests[0]["messages"][1]["content"].count("SOURCE [") < int(link.inner_text())
    link.click()
    expect(page.locator("tr", has=page.locator("mark")).first).to_contain_text("34200")


def test_a_reader_chooses_the_model_and_has_an_answer_written_anew_by_another(
    model_site: Site, anywhere: Page, model: ModelServer
) -> None:
    page = anywhere
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
        keep(page, "models")
    finally:
        with model_site.data():
            LanguageModel.objects.all().delete()
