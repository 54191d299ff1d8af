"""The debug panel of a real answer, and the users who may see it."""

import io
import re

import pptx
import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db import connection

from chat.models import Answer
from chat.signals import DisplayedScore, scores_wanted
from chat.streaming import asking
from chat.streaming.payloads import build_completed_payload
from retrieval.exceptions import RetrieverFailed
from retrieval.models import Chunk, Collection, SearchProfile
from retrieval.profile_settings import ProfileSettings
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.profiles import profiles
from retrieval.search.ranking.lexical_ranker import count_matches, find_matched_spans
from tests.support.asking import answered, client_of
from tests.support.libraries import library_of
from tests.support.people import make_superuser

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = {
    "pump.md": "# MX-9920-W\n\nThe MX-9920-W pump weighs 3450 grams. Its seal kits cost 12 euros.",
    "valve.md": "# Ball valve\n\nThe ball valve weighs 300 grams & more. Its price is 15 euros.",
    "zoo.md": "# Zoo\n\nThe zoo is open every day. An elephant is heavy, and weighs 5000 kg. <b>Bold</b>",
}
QUESTION = "How heavy is the MX-9920-W pump?"


library = library_of(TEXTS)


@pytest.fixture
def staff(db):
    return make_superuser("admin", password="a long enough one")


def text_of(html):
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_the_panel_tells_both_searches_of_a_follow_up(library, staff):
    question = "How heavy is the ball valve?"
    first = answered(question)
    answer = answered("and its price?", conversation_id=first.conversation_id)
    text = text_of(client_of(staff).get(f"/answers/{answer.pk}/debug/").content.decode())
    assert f"Also searched {question} and its price?" in text
    assert "searched alone and with the questions before it" in text
    assert re.search(r"alone: #\d \(-?\d\.\d+\) with the questions before it: #1 ", text)
    page = client_of(visitor="browser-1").get(f"/c/{first.conversation_id}/").content.decode()
    assert page.count("Also searched together with your questions before it") == 1


def test_the_panel_tells_the_whole_way_as_a_fragment_and_as_a_page(library, staff):
    answer = answered(QUESTION)
    address = f"/answers/{answer.pk}/debug/"
    fragment = client_of(staff).get(address, HTTP_HX_REQUEST="true").content.decode()
    text = text_of(fragment)
    assert "search_method zscore" in text
    # Passages with a telling word of the question: the pump's and the elephant's.
    assert "Passages that match the words 2 counted now" in text
    assert re.search(r"reformulate [\d. ]+ classify and plan [\d. ]+ both retrievers [\d. ]+ vector retriever", text)
    assert re.search(r"Context \d+ hits?, .*\d blocks? from \d documents?, \d+ of 4,000 tokens\.", text)
    assert "<mark>MX-9920-W</mark> <mark>pump</mark>" in fragment
    assert "&lt;b&gt;Bold&lt;/b&gt;" in fragment
    assert "style=" not in fragment
    page = client_of(staff).get(address).content.decode()
    assert "<!doctype html>" in page
    assert "chat/debug" in page
    Answer.objects.filter(pk=answer.pk).update(trace={}, status=Answer.Status.FAILED, error="No.")
    assert "nothing to explain" in client_of(staff).get(address).content.decode()


def test_only_staff_look_in_unless_the_site_says_otherwise(library, staff, settings):
    answer = answered(QUESTION)
    asker, other = client_of(visitor="browser-1"), client_of(visitor="browser-2")
    for path in (f"/answers/{answer.pk}/debug/", f"/answers/{answer.pk}/debug/scores/"):
        settings.CHAT_DEBUG_FOR_EVERYONE = False
        assert [each.get(path).status_code for each in (asker, other, client_of(staff))] == [404, 404, 200]
        settings.CHAT_DEBUG_FOR_EVERYONE = True
        assert [each.get(path).status_code for each in (asker, other)] == [200, 404]


def test_a_visitor_reads_no_error_and_no_passage_that_was_closed(library, staff, settings, monkeypatch):
    def broken(*_):
        raise RetrieverFailed("disk /dev/sda1 is full")

    monkeypatch.setattr("retrieval.search.ranking.vector_ranker.VectorRanker.rank", broken)
    monkeypatch.setattr("chat.debugging.panel.count_matches", broken)
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    answer = answered(QUESTION)
    path = f"/answers/{answer.pk}/debug/"
    for_staff = client_of(staff).get(path).content.decode()
    for_asker = client_of(visitor="browser-1").get(path).content.decode()
    assert "Passages that match the words not counted disk /dev/sda1 is full" in text_of(for_staff)
    assert for_staff.count("sda1") == 2
    assert "sda1" not in for_asker
    assert re.search(r"vector failed \d", text_of(for_asker))

    Chunk.objects.filter(document__source="pump.md").update(content="A secret that was added later.")
    Collection.objects.update(visibility="staff")
    assert "secret" in client_of(staff).get(path).content.decode()
    # A user who may not read the sources any more does not see how they were found either.
    assert client_of(visitor="browser-1").get(path).status_code == 404
    Answer.objects.filter(pk=answer.pk).update(sources=[], alternatives=[], source_collections=[], source_documents=[])
    closed = client_of(visitor="browser-1").get(path).content.decode()
    candidates = text_of(closed[closed.index('class="candidate-list"') :])
    assert "secret" not in closed
    assert "weigh" not in candidates
    assert candidates.count("This passage was deleted, or you may not read it.") == len(answer.trace["candidates"])


def test_matches_are_counted_within_the_time_and_the_filters(library, ingest):
    other = Collection.objects.create(slug="other", name="Other")
    ingest(other, "elephant.md", "# Elephants\n\nAn elephant is heavy.")
    assert count_matches("elephants", build_unrestricted_filters()) == 2
    assert count_matches("elephants", build_unrestricted_filters("other")) == 1
    assert count_matches("xyzzy plugh", build_unrestricted_filters()) == 0
    blocker = connection.copy()
    blocker.set_autocommit(False)
    try:
        with blocker.cursor() as cursor:
            cursor.execute("LOCK TABLE retrieval_chunk IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(RetrieverFailed, match="ran past its 0.2 s"):
            count_matches("elephants", build_unrestricted_filters(), timeout_seconds=0.2)
    finally:
        blocker.rollback()
        blocker.close()


def test_words_are_found_as_the_index_has_them(library):
    chunk = Chunk.objects.get(document__source="pump.md")
    texts = {chunk.pk: chunk.content, 10**9: "gone: pump"}
    spans = find_matched_spans(texts, {chunk.pk: ["9920", "kit"], 10**9: ["pump"]})
    assert [chunk.content[start:end] for start, end in spans[chunk.pk]][-1] == "kits"
    assert "MX-9920-W" in [chunk.content[start:end] for start, end in spans[chunk.pk]]
    assert 10**9 not in spans
    assert find_matched_spans(texts, {}) == {}


def statement(start, end, *, supported, **more):
    support = 0.97 if supported else 0.1
    plain = {"markers": [], "reasons": [], "best": None}
    return {"start": start, "end": end, "support": support, "supported": supported, **plain, **more}


def test_sentences_tokens_and_the_profile_are_told(library, staff):
    profile = SearchProfile.objects.create(slug="parts", name="Parts")
    version = profiles.add_version(profile, ProfileSettings(top_k=5))
    answer = answered(QUESTION)
    source = answer.sources[0]
    start = source["start"] + source["content"].index("3450")
    prompt = {"sources_left_out": [4], "sources_with_instructions": [3, 1]}
    Answer.objects.filter(pk=answer.pk).update(
        text="The pump weighs 3450 grams. It is red.",
        profile_version=version,
        trace={**answer.trace, "prompt": prompt},
        prompt_version=2,
        usage={"prompt_tokens": 812, "completion_tokens": 20, "cost": 0.0042, "estimated": True},
        confidence=0.91,
        statements=[
            statement(0, 27, supported=True, markers=[1], best={"marker": 1, "start": start, "end": start + 10}),
            statement(28, 38, supported=False, reasons=["uncited", "words"]),
        ],
    )
    page = client_of(staff).get(f"/answers/{answer.pk}/debug/").content.decode()
    told = text_of(page)
    assert "812 read, 20 written" in told
    assert "estimated" in told
    assert "Sources without room in the prompt 4 Sources that contain instructions ✕ 3, 1" in told
    assert "0.0042" in told
    assert "0.91" in told
    assert "Version of the prompt 2" in told
    assert f"/admin/retrieval/searchprofile/{profile.pk}/change/" in page
    reasons = "it names no source the source does not say this in these words"
    assert f"It is red. – 0.10 ✕ not supported {reasons}" in told
    assert f"start={start}&amp;end={start + 10}#passage" in page
    clerk = User.objects.create_user("clerk", password="a long enough one", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_answer"))
    assert "/admin/retrieval/" not in client_of(clerk).get(f"/answers/{answer.pk}/debug/").content.decode()


def test_scores_are_asked_for_until_they_are_there_and_one_that_fails_is_announced(
    library, staff, settings, monkeypatch
):
    given = []
    monkeypatch.setattr(scores_wanted, "receivers", [])
    scores_wanted.connect(lambda **_: given, weak=False)
    path = f"/answers/{answered(QUESTION).pk}/debug/scores/"
    client = client_of(staff)
    assert "hx-trigger" not in client.get(path).content.decode()
    given[:] = [
        DisplayedScore("faithfulness", pending=True),
        DisplayedScore("relevance", 0.8, reason="It names the pump."),
    ]
    assert f'hx-get="{path}" hx-trigger="load delay:5s"' in client.get(path).content.decode()

    def broken(**_):
        raise RuntimeError("no judge at 10.0.0.7")

    given[:] = [DisplayedScore("faithfulness", 0.93)]
    scores_wanted.connect(broken)
    told = client.get(path).content.decode()
    assert "hx-trigger" not in told
    assert "0.93" in told
    assert "no judge at 10.0.0.7" in told
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    told = client_of(visitor="browser-1").get(path).content.decode()
    assert "failed" in told
    assert "10.0.0.7" not in told


def test_the_answer_that_is_repeated_is_linked_for_who_may_read_it(library, staff, settings):
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    mine, theirs, repeating = answered(QUESTION), answered(QUESTION), answered(QUESTION)
    of_visitor = asking.create_answer("q", user=AnonymousUser(), visitor="b-2").conversation
    Answer.objects.filter(pk=theirs.pk).update(conversation=of_visitor)
    for repeated, readers in (
        (mine, (client_of(staff), client_of(visitor="browser-1"))),
        (theirs, (client_of(staff),)),
    ):
        Answer.objects.filter(pk=repeating.pk).update(repeats=repeated)
        for reader in readers:
            page = reader.get(f"/answers/{repeating.pk}/debug/").content.decode()
            assert f'<a href="/answers/{repeated.pk}/debug/">an earlier answer</a>' in page
    page = client_of(visitor="browser-1").get(f"/answers/{repeating.pk}/debug/").content.decode()
    assert "Repeats an earlier answer this answer was neither searched" in text_of(page)
    assert str(theirs.pk) not in page


def test_slides_are_called_what_they_are(collection, ingest, staff):
    deck, out = pptx.Presentation(), io.BytesIO()
    for title, words in (("Valves", "The ball valve is heavy."), ("Pumps", "The MX-9920-W pump weighs 3450 grams.")):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, words
    deck.save(out)
    ingest(collection, "talk.pptx", out.getvalue())
    answer = answered(QUESTION)
    reader, client = client_of(visitor="browser-1"), client_of(staff)
    assert "Pumps · slide\u00a02" in reader.get(f"/c/{answer.conversation_id}/").content.decode()
    # The passage spans both slides, and begins on the first one.
    assert "<span>slide\u00a01</span>" in client.get(f"/answers/{answer.pk}/debug/").content.decode()
    citation = answer.citations.get()
    body = {"query": "weight of the MX-9920-W", "top_k": 1}
    (hit,) = client.post("/api/v1/search/", body, content_type="application/json").json()["results"]
    assert (hit["page"], hit["page_unit"], citation.page) == (1, "slide", 2)
    assert build_completed_payload(answer, [citation])["citations"][0]["page_unit"] == "slide"
    shown = client.get(f"/documents/{citation.document_id}/", {"start": citation.start, "end": citation.end})
    assert "slide 2" in shown.content.decode()


def test_the_panel_names_its_figures_and_says_what_is_empty(library, staff):
    answer = answered(QUESTION)
    html = client_of(staff).get(f"/answers/{answer.pk}/debug/").content.decode()
    text = text_of(html)
    assert "Search method search_method zscore" in text
    assert "Corrected words none Expanded words none" in text
    assert "Reranker: none was used, so its columns are empty." in text
    pump = Chunk.objects.get(document__source="pump.md")
    # The first hit is quoted, from the first block, at the place with its words.
    assert re.search(r"1 \d+\.\d+ MX-9920-W .*?as the answer the first hit 1 ", text)
    assert re.search(r'<td class="closest">[^/]*<mark>', html)
    candidates = text_of(html[html.index('class="candidate-list"') :])
    assert "Borders of the passage · block 1 of the context" in candidates
    href = f"/documents/{pump.document_id}/?passages=1&amp;start={pump.start}&amp;end={pump.end}#passage"
    assert f'href="{href}"' in html
    trace = {**answer.trace}
    trace["reformulation"] = {**trace["reformulation"], "corrected": True, "reason": "spelling: pumpp → pump"}
    lexical = next(each for each in trace["legs"] if each["leg"] == "lexical")
    lexical["expansions"] = {"kit": ["kits", "set"], "mx": ["9920"]}
    Answer.objects.filter(pk=answer.pk).update(trace=trace)
    text = text_of(client_of(staff).get(f"/answers/{answer.pk}/debug/").content.decode())
    assert "Corrected words spelling: pumpp → pump Expanded words mx → 9920; kit → kits, set" in text
    refused = answered("Where may a parrot sleep on Sundays?")
    shown = text_of(client_of(staff).get(f"/answers/{refused.pk}/debug/").content.decode())
    assert refused.refused
    assert "as card 1 one of the closest passages: none answers the question" in shown
    # An answer of an earlier release has no blocks.
    del trace["blocks"]
    Answer.objects.filter(pk=answer.pk).update(trace=trace)
    assert "of the context" not in text_of(client_of(staff).get(f"/answers/{answer.pk}/debug/").content.decode())


def test_panel_and_playground_lead_to_each_other(library, staff):
    answer = answered(QUESTION)
    client = client_of(staff)
    panel = f"/answers/{answer.pk}/debug/"
    [address] = re.findall(
        r'href="(/admin/retrieval/searchprofile/playground/[^"]*)"', client.get(panel).content.decode()
    )
    page = client.get(address.replace("&amp;", "&")).content.decode()
    assert f'href="{panel}"' in page
    # A second search there keeps the way back.
    assert f'<input type="hidden" name="answer" value="{answer.pk}">' in page
    assert f'value="{QUESTION}"' in page
    assert "Back to the debug panel" not in client.get(address.split("?")[0] + "?answer=javascript:x").content.decode()


def test_a_block_and_words_of_closed_passages_stay_hidden(library, staff, settings):
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    answer = answered(QUESTION)
    Collection.objects.create(slug="secret", name="Secret", visibility="staff")
    asker = client_of(visitor="browser-1")
    assert "Expanded words none" in text_of(asker.get(f"/answers/{answer.pk}/debug/").content.decode())
    Chunk.objects.filter(document__source="zoo.md").delete()
    assert "Expanded words not shown to you" in text_of(asker.get(f"/answers/{answer.pk}/debug/").content.decode())
