"""Rules that a program can check: WCAG by axe, and no page wider than its window."""

from itertools import pairwise

from playwright.sync_api import expect

from tests.browser.pages import ask, begin_asking, in_all_looks, share, too_wide, violations

ANSWERED = "What is the difference between addVar and setVar?"
OFF_TOPIC = "Who won the football world cup in 1998?"


def test_axe_finds_nothing(site, page):
    page.goto(site.url)
    found = in_all_looks(page)
    # On the narrow screen, which it is by now.
    page.locator("#open-sidebar").click()
    expect(page.locator("#sidebar")).to_be_in_viewport()
    found += violations(page)
    page.keyboard.press("Escape")

    turn = ask(page, ANSWERED)
    expect(page.get_by_role("main")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    shown = "nodes => nodes.filter(n => n.offsetParent).map(n => Number(n.tagName[1]))"
    levels = page.eval_on_selector_all("h1, h2, h3, h4, h5, h6", shown)
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    turn.locator(".also-found summary").click()
    # The tests of the source viewer look at the citation's target.
    expect(ask(page, OFF_TOPIC).locator(".answer")).to_have_class("answer is-refused")
    turn.locator(".cite a").first.focus()
    found += in_all_looks(page)
    assert found == []


def test_axe_finds_nothing_in_rarer_states(model_site, page, model):
    page.goto(model_site.url)
    model.statuses = [401]
    turn = ask(page, ANSWERED)
    expect(turn.locator(".notice")).to_be_visible()
    # The pieces are whole sentences, because a sentence is withheld until its end.
    model.pieces = [f"Here is word{number} [1]. " for number in range(4_000)]
    model.delay_seconds = 0.1
    turn = begin_asking(page, ANSWERED)
    expect(turn.locator(".answer")).to_contain_text("word2")
    found = in_all_looks(page)
    page.click("#stop")
    expect(turn.locator(".answer")).to_have_class("answer is-stopped")
    page.fill("#question", "a" * 505)
    found += in_all_looks(page)
    assert found == []


def test_axe_finds_nothing_while_one_judges_shares_and_renames(site, page):
    from chat.models import Answer

    page.goto(site.url)
    turn = ask(page, ANSWERED)
    with site.data():
        answer = Answer.objects.get(pk=(turn.get_attribute("id") or "").removeprefix("answer-"))
        doubt = {"start": 0, "end": 20, "supported": False, "reasons": ["number"], "best": None}
        answer.statements, answer.cache_key, answer.completed_question = [doubt], "", "A completed question"
        answer.save()
    page.reload()
    turn.get_by_role("button", name="Not helpful").click()
    expect(turn.get_by_role("radio").first).to_be_focused()
    page.locator("#share summary").click()
    expect(page.locator(".share-panel")).to_be_visible()
    found = in_all_looks(page)
    page.locator("#share summary").click()
    link = share(page)
    expect(page.locator(".share-panel")).to_be_visible()
    turn.locator(".doubt").focus()
    found += in_all_looks(page)
    page.locator("#open-sidebar").click()
    expect(page.locator("#sidebar")).to_be_in_viewport()
    page.locator(".conversations li").hover()
    page.get_by_role("link", name="Rename").click()
    expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    found += in_all_looks(page)
    page.goto(link)
    expect(page.locator(".doubt")).to_be_visible()
    found += in_all_looks(page)
    assert found == []


def test_a_long_word_does_not_widen_the_page(model_site, page, model):
    model.pieces = ["x" * 300, " [1]\n\n```\n", "y" * 300, "\n```\n\n| a | b |\n|---|---|\n| ", "z" * 200, " | 1 |\n"]
    page.goto(model_site.url)
    ask(page, "w" * 300)
    assert too_wide(page) == []


def test_nothing_that_has_the_focus_lies_under_the_question(site, anywhere):
    page = anywhere
    page.goto(site.url)
    ask(page, OFF_TOPIC)
    ask(page, ANSWERED)
    page.evaluate("scrollTo(0, 0)")
    covered = page.evaluate(
        """async () => {
            const dock = document.querySelector(".composer-dock");
            const found = [];
            for (const node of document.querySelectorAll(".turn :is(a, button, summary, [tabindex='0'])")) {
                if (!node.checkVisibility() || node.closest(".sources")) continue;
                node.focus({ focusVisible: true });
                await new Promise(requestAnimationFrame);
                const box = node.getBoundingClientRect();
                if (box.bottom > dock.querySelector("form").getBoundingClientRect().top) found.push(node.outerHTML);
            }
            return found;
        }"""
    )
    assert covered == []
