"""Text of documents and models that would like to be a program."""

import pytest
from playwright.sync_api import expect

from tests.browser.pages import NO_TRACE, ask, confirm, leave_no_trace_of

ATTACKS = (
    "<script>window.hacked = 'script'</script>"
    "<img src=x onerror=\"window.hacked='image'\">"
    "<svg onload=\"window.hacked='svg'\"></svg>"
    "<iframe src=\"javascript:parent.hacked='frame'\"></iframe>"
    "<style>body{display:none}</style>"
)
LINKS = "[a link](javascript:window.hacked=1) [another](data:text/html,<script>alert(1)</script>) ![pic](http://127.0.0.1:9/x.png)"
TITLE = "<script>window.hacked='title'</script>\"><img src=x onerror=window.hacked='title'> Quokka"
QUESTION = "What does a quokka weigh?"


@pytest.fixture(scope="module")
def hostile_site(model_site):
    """Yield the site with a model, and with a document that attacks its readers in words, title and heading."""
    from retrieval.documents import ingestion, submission
    from retrieval.models import Collection, Document

    fact = f"A quokka weighs 3.2 kg. See {ATTACKS[:48]} there. More {ATTACKS} {LINKS}"
    text = f"# {TITLE}\n\n## Weight {ATTACKS}\n\n{fact}\n"
    with model_site.data():
        collection = Collection.objects.create(slug="zoo", name=f"Zoo {ATTACKS[:41]}", visibility="public")
        submitted = submission.submit(
            collection, "<img src=x onerror=hacked=1>.md", text.encode(), title=TITLE, enqueue=False
        )
        ingestion.ingest_document(submitted.document.pk)
        submitted.document.refresh_from_db()
        assert submitted.document.status == Document.Status.READY, submitted.document.error
    yield model_site
    with model_site.data():
        submitted.document.delete()
        collection.delete()


def assert_nothing_happened(page, requested):
    page.wait_for_load_state("networkidle")
    assert leave_no_trace_of(page) == NO_TRACE
    assert page.locator("body").is_visible()
    assert [url for url in requested if url.endswith((":9/x.png", "/x"))] == []


@pytest.fixture
def requested(page):
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    return urls


def test_hostile_documents_are_shown_as_text(hostile_site, page, requested, model):
    model.statuses = [401]
    hostile_site.sign_in(page)
    turn = ask(page, QUESTION)
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    expect(turn.locator("[data-answer-text]")).to_contain_text("A quokka weighs 3.2 kg.")
    expect(turn.locator("[data-answer-text]")).to_contain_text("<script>window.hacked = 'script'</script>")
    expect(turn.locator(".source-title").first).to_contain_text("<script>")
    turn.locator(".cite a[data-title*='<script>']").first.hover()
    expect(page.locator("#preview")).to_contain_text("<script>")
    assert page.locator("#preview img, #preview script").count() == 0
    assert_nothing_happened(page, requested)

    turn.locator(".debug summary").first.click()
    expect(turn.locator(".candidates")).to_contain_text("<script>")
    assert_nothing_happened(page, requested)

    page.reload()
    assert_nothing_happened(page, requested)
    page.locator(".cite a[data-title*='<script>']").first.click()
    expect(page.locator("#sheet #passage")).to_be_in_viewport()
    expect(page.locator("#sheet h2").first).to_contain_text("<script>")
    assert_nothing_happened(page, requested)
    page.get_by_role("link", name="Open the document").click()
    expect(page.locator("main #passage")).to_be_in_viewport()
    expect(page.locator("h1")).to_contain_text("<script>")
    assert_nothing_happened(page, requested)

    page.goto(hostile_site.url)
    expect(page.get_by_label("Documents to ask")).to_contain_text("Zoo <script>")
    assert_nothing_happened(page, requested)


def test_hostile_models_and_questions_are_shown_as_text(hostile_site, page, requested, model):
    cut = len(ATTACKS) // 2
    model.pieces = [
        "It weighs 3.2 kg [1]. ", ATTACKS[:cut], ATTACKS[cut:], "\n\n", LINKS,
        " <scr", "ipt>window.hacked=2</scr", "ipt>\n\n",
        "| a | b |\n|---|---|\n| <img src=x onerror=hacked=3> | [x](vbscript:hacked) |\n",
    ]  # fmt: skip
    model.delay_seconds = 0.05
    page.goto(hostile_site.url)
    question = f"<img src=x onerror=hacked=1><script>hacked=2</script> {QUESTION}"
    turn = ask(page, question)
    expect(turn.locator(".question")).to_have_text(question)
    expect(page.locator(".conversations a").first).to_have_text(question)
    expect(turn.locator("[data-answer-text]")).to_contain_text("<script>window.hacked = 'script'</script>")
    assert_nothing_happened(page, requested)
    page.reload()
    assert_nothing_happened(page, requested)
    page.locator(".conversations li").hover()
    page.locator(".conversations button").click()
    assert confirm(page, accept=False) == f"Delete “{question}” and its answers?"
    expect(page.locator(".conversations li")).to_have_count(1)
    assert_nothing_happened(page, requested)


def test_hostile_documents_do_nothing_to_administrators(hostile_site, page, requested):
    hostile_site.sign_in(page)
    for path in ("document", "chunk", "collection"):
        page.goto(f"{hostile_site.url}/admin/retrieval/{path}/?q={'' if path == 'collection' else 'quokka'}")
        expect(page.locator("#result_list")).to_contain_text("<")
        assert_nothing_happened(page, requested)
        if path != "collection":
            page.locator("#result_list tbody th a").first.click()
            expect(page.locator("#content")).to_contain_text("<script>")
            assert_nothing_happened(page, requested)
