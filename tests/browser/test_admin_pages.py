"""An administrator's way: sign in, add documents, see how far they are, ask about them."""

import re

import pytest
from playwright.sync_api import FilePayload, expect

from chat.models import CollectionInstructions, LanguageModel
from retrieval.models import Collection
from tests.browser.conftest import PHONE
from tests.browser.pages import ask, in_all_looks, is_too_wide, violations
from tests.support.sources import WebServer

PLATYPUS = b"# Platypus\n\nA platypus lays between one and three eggs.\n\n## Venom\n\nThe male has a venomous spur.\n"
ROWS = "#result_list tbody tr"


@pytest.fixture(scope="module")
def own_site(site):
    """Yield the site; documents that are added to it are removed at the end of the module."""
    from chat.models import ApprovedAnswer
    from retrieval.models import Document

    with site.data():
        before = set(Document.objects.values_list("pk", flat=True))
    yield site
    with site.data():
        ApprovedAnswer.objects.all().delete()
        Document.objects.exclude(pk__in=before).delete()


def tab_to(page, wanted):
    for _ in range(60):
        page.keyboard.press("Tab")
        if wanted.evaluate("node => node === document.activeElement"):
            return
    expect(wanted).to_be_focused()


def row_of(page, name):
    return page.locator(ROWS, has_text=name)


def test_documents_are_added_and_read(own_site, page):
    own_site.sign_in(page)
    page.get_by_role("link", name="Manage documents").click()
    page.goto(f"{own_site.url}/admin/retrieval/document/add/")
    page.select_option("#id_collection", label="Lingo language reference")
    page.set_input_files(
        "#id_file",
        [
            FilePayload(name="platypus.md", mimeType="text/markdown", buffer=PLATYPUS),
            FilePayload(name="sound.mp3", mimeType="audio/mpeg", buffer=b"ID3\3" + bytes(200)),
            FilePayload(name="torn.pdf", mimeType="application/pdf", buffer=b"%PDF-1.7\n" + b"torn " * 50),
        ],
    )
    rows = page.locator(".uploads li")
    expect(rows).to_have_count(3)
    expect(rows.nth(2).locator("use")).to_have_attribute("href", re.compile("#printed$"))
    expect(rows.nth(2).locator("[data-size]")).to_have_text("0.3 kB")
    expect(page.locator("progress")).to_have_count(0)
    expect(rows.nth(0).locator(".ragsite-status")).to_have_text("waiting")
    expect(rows.nth(1)).to_contain_text("Not added: sound.mp3")
    expect(page.get_by_role("button", name="Add documents")).to_be_hidden()
    page.goto(f"{own_site.url}/admin/retrieval/document/")

    assert page.locator(".results").evaluate("box => box.scrollWidth <= box.clientWidth"), "The list is cut off."
    expect(page.locator("#changelist-filter")).to_contain_text("By source")
    # The status changes without a reload.
    expect(row_of(page, "platypus").locator(".ragsite-status")).to_have_text("waiting")
    own_site.work()
    expect(row_of(page, "platypus").locator(".ragsite-status")).to_have_text("ready")
    expect(row_of(page, "platypus").locator("[data-document-fact=passages]")).to_have_text(re.compile("[1-9]"))
    torn = row_of(page, "torn")
    if torn.count():
        expect(torn.locator(".ragsite-status")).to_have_text("failed")
        expect(torn.locator("[data-document-fact=error]")).to_contain_text("torn.pdf")

    page.goto(own_site.url)
    turn = ask(page, "How many eggs does a platypus lay?")
    expect(turn.locator("[data-answer-text]")).to_contain_text("between one and three eggs")


def test_files_are_kept_until_their_collection_is_made(own_site, page, complaints):
    complaints.expected.append("400")
    own_site.sign_in(page)
    files = [FilePayload(name=f"{name}.md", mimeType="text/markdown", buffer=name.encode() * 9) for name in "ab"]
    try:
        page.goto(f"{own_site.url}/admin/retrieval/document/add/")
        page.locator("#id_collection").focus()
        tab_to(page, page.get_by_label("choose files"))
        page.set_input_files("#id_file", files)
        rows = page.locator(".uploads li")
        expect(rows.nth(1)).to_contain_text("will be sent when its collection is chosen or made")
        page.get_by_role("textbox", name="Or a new collection").fill("Kept files")
        page.get_by_role("button", name="Make this collection").click()
        expect(rows.locator(".ragsite-status")).to_have_text(["waiting", "waiting"])
        expect(page.locator("#id_collection option:checked")).to_have_text("Kept files")
        assert in_all_looks(page) == []

        page.goto(f"{own_site.url}/admin/retrieval/collection/add/")
        page.get_by_label("choose files").set_input_files(files)
        page.get_by_role("textbox", name="Name:", exact=True).fill("Kept again")
        # Django's script fills in the short name when the field is left.
        page.keyboard.press("Tab")
        page.get_by_role("textbox", name="Short name:").fill("handbook")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator(".field-slug")).to_contain_text("already exists")
        expect(rows).to_have_count(2)
        assert in_all_looks(page) == []
        page.get_by_role("textbox", name="Short name:").fill("kept-again")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(rows.locator(".ragsite-status")).to_have_text(["waiting", "waiting"])
        page.get_by_role("link", name="Kept again").click()
        expect(page.get_by_label("choose files")).to_be_visible()
        with own_site.data():
            assert Collection.objects.get(slug="kept-again").documents.count() == 2
            assert Collection.objects.get(slug="kept-files").documents.count() == 2
    finally:
        with own_site.data():
            Collection.objects.filter(slug__startswith="kept-").delete()


def test_what_is_dropped_and_pasted_on_a_collection_is_added(own_site, page):
    web = WebServer()
    web.pages["/wombat"] = (
        "<html><title>Wombat</title><main><p>A wombat makes cubes of its droppings.</p></main></html>"
    )
    own_site.sign_in(page)
    with own_site.data():
        pk = Collection.objects.get(slug="handbook").pk
    page.goto(f"{own_site.url}/admin/retrieval/collection/{pk}/change/")
    form = page.locator("form[data-uploading]")
    files = {"koala.md": "# Koala\n\nA koala sleeps for twenty hours a day.", "dingo.md": "# Dingo\n\nIt howls."}
    drop = """(form, files) => {
        const dropped = new DataTransfer();
        for (const [name, text] of Object.entries(files)) dropped.items.add(new File([text], name));
        for (const kind of ["dragover", "drop"])
            form.dispatchEvent(new DragEvent(kind, {dataTransfer: dropped, bubbles: true, cancelable: true}));
    }"""
    form.evaluate(drop, files)
    rows = form.locator(".uploads li")
    expect(rows).to_have_count(2)
    expect(form.locator("progress")).to_have_count(0)
    form.evaluate(drop, {"copy of koala.md": files["koala.md"]})
    expect(rows.nth(2)).to_contain_text("copy of koala.md is the same file as koala.md, which is there already.")

    page.evaluate(
        """address => {
            const pasted = new DataTransfer();
            pasted.setData("text/plain", address);
            document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData: pasted, bubbles: true}));
        }""",
        f"{web.url}/wombat",
    )
    expect(rows.nth(3).locator(".ragsite-status")).to_have_text("waiting")
    form.get_by_text("Paste a text or a web address").click()
    text = form.get_by_role("textbox", name="Text or Markdown")
    text.fill(f"{web.url}/nowhere")
    form.get_by_role("button", name="Add documents").click()
    expect(rows.nth(4)).to_contain_text("There is no page at")
    expect(text).to_have_value(f"{web.url}/nowhere")
    text.fill("A quokka smiles.")
    form.get_by_role("textbox", name="Title of the text").fill("Quokka")
    form.get_by_role("button", name="Add documents").click()
    expect(rows.nth(5)).to_contain_text("Quokka")
    expect(text).to_have_value("")
    web.close()
    own_site.work()
    page.goto(f"{own_site.url}/admin/retrieval/document/")
    for name in ("Koala", "Dingo", "Wombat", "Quokka"):
        expect(row_of(page, name).locator(".ragsite-status")).to_have_text("ready")


def test_the_pages_of_language_models_and_instructions(own_site, page):
    with own_site.data():
        model = LanguageModel.objects.create(name="away", base_url="http://127.0.0.1:9/v1", model="away")
        written = CollectionInstructions.objects.create(collection=Collection.objects.first(), text="Be brief.")
        written.activate("It is as good as before.")
    try:
        own_site.sign_in(page)
        page.goto(f"{own_site.url}/admin/chat/languagemodel/{model.pk}/change/")
        assert violations(page) == []
        page.get_by_role("button", name="Test").click()
        expect(page.locator(".errornote")).to_contain_text("The line to the model broke")
        assert violations(page) == []
        page.goto(f"{own_site.url}/admin/chat/collectioninstructions/{written.pk}/change/")
        assert violations(page) == []
        page.get_by_role("link", name="Preview").click()
        page.get_by_role("button", name="Ask").click()
        expect(page.locator("#content-main tbody tr")).to_have_count(3)
        assert violations(page) == []
    finally:
        with own_site.data():
            model.delete()
            written.delete()


def test_axe_finds_nothing_in_forms_that_django_makes(own_site, page):
    # Django's read-only tables have a heading without text, and its lists of choices unfold outside of all landmarks.
    own = ("empty-table-header", "region")
    own_site.sign_in(page)
    answered = (ask(page, "Which seal kit fits the MX-9920-W?").get_attribute("id") or "").removeprefix("answer-")
    page.goto(f"{own_site.url}/admin/chat/answer/{answered}/change/")
    found = in_all_looks(page, without=own)
    page.goto(f"{own_site.url}/admin/retrieval/document/")
    found += in_all_looks(page, without=own)
    for address in ("retrieval/collection/1", "auth/user/1", "auth/group/1", "evaluation/evaluationquestion/1"):
        page.goto(f"{own_site.url}/admin/{address}/change/")
        found += violations(page, without=own)
    page.goto(f"{own_site.url}/admin/chat/questionbudget/add/")
    found += violations(page, without=own)
    page.get_by_role("combobox", name="User:").click()
    expect(page.get_by_role("option", name="admin", exact=True)).to_be_visible()
    found += violations(page, without=own)
    page.goto(f"{own_site.url}/admin/password_change/")
    assert found + violations(page, without=own) == []


def test_the_api_can_be_browsed(own_site, page):
    page.goto(f"{own_site.url}/api/docs/")
    expect(page.locator("#swagger-ui")).to_contain_text("/api/v1/search/")
    # The headings of Swagger UI begin at the third level.
    assert violations(page, without=("heading-order", "region")) == []


def test_an_answer_is_approved_and_readers_see_by_whom(own_site, visitor):
    question = "May I bring my parrot to the pump room?"
    reader, page = visitor(), visitor(**PHONE)
    reader.goto(own_site.url)
    ask(reader, question)
    expect(reader.locator(".answer.is-refused")).to_be_visible()
    own_site.sign_in(page)
    page.goto(f"{own_site.url}/admin/chat/answer/?refused__exact=1")
    page.get_by_role("link", name=question).first.click()
    page.get_by_role("link", name="Mend this answer").click()
    way = page.locator("details", has=page.get_by_role("heading", name="Approve an answer"))
    # From here on with the keyboard alone.
    tab_to(page, way.locator("summary"))
    page.keyboard.press("Enter")
    tab_to(page, way.get_by_label("Answer", exact=True))
    page.keyboard.type("No. **Animals** stay outside the pump room.")
    tab_to(page, way.get_by_role("checkbox").first)
    page.keyboard.press("Space")
    assert violations(page) == []
    assert not is_too_wide(page)
    tab_to(page, way.get_by_role("button", name="Preview", exact=True))
    page.keyboard.press("Enter")
    trial = page.get_by_role("region", name="As it would be answered")
    expect(trial).to_contain_text("Animals stay outside the pump room.")
    assert violations(page) == []
    assert not is_too_wide(page)
    tab_to(page, trial.get_by_role("button", name="Save"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("Saved. Ask again")).to_be_visible()
    reader.goto(own_site.url)
    ask(reader, question.upper())
    expect(reader.locator(".approved")).to_have_text(re.compile("Approved by admin on"))
    expect(reader.locator(".answer sup.cite")).to_have_count(1)
    assert violations(reader) == []
