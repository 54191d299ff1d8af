"""The admin's list of answers: figures, filters and order, also with many answers."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.models import Answer, ApprovedAnswer, Conversation, Feedback
from retrieval.models import Collection
from tests.support.asking import answered
from tests.support.libraries import library_of
from tests.support.people import make_reader, make_staff

LIST = "/admin/chat/answer/"


@pytest.fixture
def conversation(db):
    return Conversation.objects.create(title="Pumps")


def answer(conversation, question, **values):
    known = {"status": "completed", "search_method": "zscore", "text": "Yes.", "completed_at": timezone.now()}
    return Answer.objects.create(conversation=conversation, question=question, **known | values)


def listed(client, query):
    page = client.get(f"{LIST}?{query}")
    assert page.status_code == 200, query
    return [row.question for row in page.context["cl"].result_list]


@pytest.mark.django_db
def test_only_what_needs_attention_has_a_badge(conversation, admin):
    answer(conversation, "answered")
    answer(conversation, "refused", refused=True)
    Feedback.objects.create(answer=answer(conversation, "liked"), helpful=True)
    Feedback.objects.create(answer=answer(conversation, "disliked"), helpful=False)
    rows = re.findall(r"<tr>.*?</tr>", admin.get(LIST).content.decode(), re.S)
    badges = {
        re.findall(r'<th class="field-question">.*?>(\w+)<', row)[0]: re.findall(
            r"field-(refusal|gap|rating)\"><span[^>]*>([^<]+)", row
        )
        for row in rows
        if "field-question" in row
    }
    assert badges == {
        "answered": [],
        "refused": [("refusal", "Not answered"), ("gap", "gap")],
        "liked": [("rating", "Helpful")],
        "disliked": [("gap", "gap"), ("rating", "Not helpful")],
    }
    assert not any("icon-no" in row or "icon-yes" in row for row in rows)


library = library_of({"pump.md": "# MX-9920-W\n\nThe MX-9920-W pump weighs 3450 grams. Its seal kits cost 12 euros."})


@pytest.mark.django_db(transaction=True)
def test_a_saved_answer_has_its_figures_in_the_list(library, admin):
    asked = answered("How heavy is the MX-9920-W pump?")
    assert asked.total_ms == asked.timings_ms["total"]
    assert asked.search_ms == asked.trace["timings_ms"]["total"]
    assert 0 < asked.search_ms < asked.total_ms
    again = answered("How heavy is the MX-9920-W pump?")
    # It was not searched again.
    assert again.repeats_id == asked.pk
    assert again.total_ms == again.timings_ms["total"]
    assert again.search_ms is None
    html = admin.get(LIST).content.decode()
    [row] = [row for row in re.findall(r"<tr>.*?</tr>", html, re.S) if str(asked.pk) in row]
    assert f'href="/answers/{asked.pk}/debug/"' in row
    assert f'<td class="field-formatted_confidence">{asked.confidence:.2f}</td>' in row
    assert re.search(
        r'<td class="field-formatted_total_ms">[\d,]+</td>\s*<td class="field-formatted_search_ms">[\d,]+</td>', row
    )
    assert "zscore" in row


def test_answers_are_filtered_by_each_figure_and_sorted(admin, conversation, collection):
    answer(conversation, "fast", total_ms=80.0, search_ms=20.0, confidence=0.95, collection=collection)
    answer(conversation, "slow", total_ms=6_000.0, search_ms=1_500.0, confidence=0.7, generator="llama")
    answer(conversation, "refused", total_ms=150.0, confidence=0.05, refused=True, degraded=["vector"])
    answer(conversation, "disliked", total_ms=25_000.0, confidence=0.6, search_method="lexical")
    Feedback.objects.create(answer=Answer.objects.get(question="disliked"), helpful=False)
    out = ApprovedAnswer.objects.create(
        question="weather", text="No.", collection=collection, kind=ApprovedAnswer.Kind.OUT_OF_SCOPE
    )
    answer(conversation, "greeting", search_method="", refused=True)
    answer(conversation, "weather", approved=out, refused=True, total_ms=3.0)
    for query, expected in {
        "total_ms__gte=100": {"slow", "refused", "disliked"},
        "total_ms__gte=20000": {"disliked"},
        "total_ms__gte=100&total_ms__lt=6000": {"refused"},
        "total_ms__gte=&total_ms__lt=100": {"fast", "weather"},
        "search_ms__gte=1000": {"slow"},
        "confidence__lt=0.1": {"refused"},
        "confidence__gte=0.6&confidence__lt=0.8": {"slow", "disliked"},
        "gap=yes": {"refused", "disliked"},
        "gap=no": {"fast", "slow", "greeting", "weather"},
        "refused__exact=1&gap=yes": {"refused"},
        "degraded=yes": {"refused"},
        "search_method=lexical": {"disliked"},
        "generator=llama": {"slow"},
        f"collection__id__exact={collection.pk}": {"fast"},
        urlencode({"created_at__gte": (timezone.now() + timedelta(days=1)).isoformat()}): set(),
        "q=slo": {"slow"},
    }.items():
        assert set(listed(admin, query)) == expected, query
    columns = admin.get(LIST).context["cl"].list_display
    slowest = listed(admin, f"o=-{columns.index('formatted_total_ms')}")
    assert slowest[:3] == ["disliked", "slow", "refused"]
    # An answer without a time comes last.
    assert slowest[-1] == "greeting"
    assert listed(admin, f"o=-{columns.index('formatted_search_ms')}")[:2] == ["slow", "fast"]
    assert admin.get(f"{LIST}?total_ms__gte=slow").status_code == 302
    assert listed(admin, "total_ms__gte=100&_facets=True")
    page = admin.get(f"{LIST}?q=o&total_ms__gte=100").content.decode()
    assert '<input type="hidden" name="q" value="o">' in page
    assert 'name="total_ms__gte" value="100"' in page
    assert "style=" not in page


def test_no_filter_shows_an_answer_of_closed_documents(conversation):
    clerk = make_staff("clerk", "view_answer")
    client = Client()
    client.force_login(clerk)
    closed = Collection.objects.create(slug="closed", name="Closed", visibility="members")
    secret = answer(
        conversation, "the secret", total_ms=9_000.0, confidence=0.05, refused=True, collection=closed,
        source_collections=[closed.pk],
    )  # fmt: skip
    answer(conversation, "the open one", total_ms=9_000.0, refused=True)
    for query in ("", "total_ms__gte=100", "confidence__lt=1", "gap=yes", "refused__exact=1", "q=the", "o=-3"):
        assert "the secret" not in listed(client, query), query
    assert listed(client, "gap=yes") == ["the open one"]
    assert client.get(f"/answers/{secret.pk}/debug/").status_code == 404
    reader = Client()
    reader.force_login(make_reader("reader"))
    assert reader.get(LIST).status_code == 302


def test_the_list_stays_fast_with_many_answers(admin, conversation):
    with connection.cursor() as cursor:
        # Each row is as wide as a real one: its trace is stored out of line.
        cursor.execute(
            """
            INSERT INTO chat_answer (id, conversation_id, question, status, text, created_at, completed_at, refused,
                search_method, generator, total_ms, search_ms, confidence, trace, attempts, method, model, anew, error,
                notice, degraded, usage, completed_question, joined_question, statements, cache_key, sources,
                source_collections, source_documents, narrowing_key, timings_ms, near, choices)
            SELECT gen_random_uuid(), %s, 'question ' || n, 'completed', 'text', now() - n * interval '1 minute',
                now(), n %% 50 = 0, 'zscore', 'extractive', n %% 3000, n %% 500, (n %% 100) / 100.0, '{}', 1, '', '',
                false, '', '', '[]', '{}', '', '', '[]', '', '[]', '{}', '{}', '', '{}', '[]', '[]'
              FROM generate_series(1, 20000) AS n
            """,
            [conversation.pk],
        )
        cursor.execute("ANALYZE chat_answer")
    columns = admin.get(LIST).context["cl"].list_display
    for query, index in {
        "": "answer_by_time",
        f"o=-{columns.index('formatted_total_ms')}": "answer_by_total_ms",
        f"o=-{columns.index('formatted_search_ms')}": "answer_by_search_ms",
        f"o=-{columns.index('formatted_confidence')}": "answer_by_confidence",
        f"total_ms__gte=2980&o=-{columns.index('formatted_total_ms')}": "answer_by_total_ms",
    }.items():
        with CaptureQueriesContext(connection) as queries:
            assert len(listed(admin, query)) == 50
        assert len(queries) < 30
        [rows] = [each["sql"] for each in queries if "LIMIT 50" in each["sql"]]
        assert '"trace"' not in rows
        assert '"sources"' not in rows
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {rows}")
            plan = "\n".join(line for [line] in cursor.fetchall())
        assert index in plan, plan
        assert "Seq Scan on chat_answer" not in plan, plan
