"""The search of an answer, run again beside its first one."""

import re

import pytest
from django.contrib.auth.models import Group

from chat.models import Answer
from retrieval.models import Chunk, Collection, CollectionGrant, Document, SearchProfile
from retrieval.profile_settings import ProfileSettings
from retrieval.search.profiles import profiles
from retrieval.types import SearchMethod
from tests.support.asking import answered, client_of
from tests.support.libraries import library_of
from tests.support.people import make_staff, make_superuser

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = {
    "pump.md": "# MX-9920-W\n\nThe MX-9920-W pump weighs 3450 grams. Its seal kits cost 12 euros.",
    "valve.md": "# Ball valve\n\nThe ball valve weighs 300 grams & more. Its price is 15 euros.",
    "zoo.md": "# Zoo\n\nThe zoo is open every day. An elephant is heavy, and weighs 5000 kg.",
}
QUESTION = "How heavy is the MX-9920-W pump?"

library = library_of(TEXTS)


@pytest.fixture
def staff(db):
    return make_superuser("admin", password="a long enough one")


def told(client, answer, **headers):
    response = client.get(f"/answers/{answer.pk}/debug/now/", **headers)
    assert response.status_code == 200
    html = response.content.decode()
    return html, " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_nothing_has_changed_and_nothing_is_saved(library, staff):
    answer = answered(QUESTION)
    before = Answer.objects.values().get(pk=answer.pk)
    html, text = told(client_of(staff), answer)
    assert "3 in the same place, 0 moved, 0 new, 0 gone." in text
    assert "The index has not changed since." in text
    score = answer.trace["candidates"][0]["score"]
    assert re.search(rf"1 1 same MX-9920-W .*?{score:.4f} {score:.4f}", text)
    assert "<!doctype html>" in html
    assert "<!doctype html>" not in told(client_of(staff), answer, HTTP_HX_REQUEST="true")[0]
    assert Answer.objects.values().get() == before
    panel = client_of(staff).get(f"/answers/{answer.pk}/debug/").content.decode()
    assert f'href="/answers/{answer.pk}/debug/now/"' in panel


def test_new_and_gone_passages_and_a_changed_index_are_told(library, staff, ingest):
    answer = answered(QUESTION)
    ingest(library, "newer.md", "# MX-9920-W\n\nHow heavy is the MX-9920-W pump? It is heavy: 3460 grams.")
    Document.objects.get(source="zoo.md").delete()
    text = told(client_of(staff), answer)[1]
    assert "1 new, 1 gone" in text
    assert re.search(r"1 new MX-9920-W", text)
    assert "gone This passage was deleted, or you may not read it." in text
    assert "1 document was read since, on " in text
    Document.objects.get(source="newer.md").delete()
    assert "The index has changed since: documents were deleted" in told(client_of(staff), answer)[1]
    trace = {**answer.trace}
    del trace["index"]
    Answer.objects.filter(pk=answer.pk).update(trace=trace)
    assert "older than the record of the index" in told(client_of(staff), answer)[1]


def test_the_answers_own_profile_and_filters_are_used(library, staff, ingest):
    version = profiles.add_version(
        SearchProfile.objects.create(slug="parts", name="Parts"), ProfileSettings(top_k=2, depth=20)
    )
    profiles.publish_profile(version, staff)
    other = Collection.objects.create(slug="other", name="Other")
    answer = answered(QUESTION, collection=library.slug)
    ingest(other, "other.md", "# MX-9920-W\n\nHow heavy is the MX-9920-W pump?")
    profiles.publish_profile(
        profiles.add_version(version.profile, ProfileSettings(method=SearchMethod.LEXICAL, top_k=1)), staff
    )
    text = told(client_of(staff), answer)[1]
    # The collection of the question has not changed, and two passages are kept as then.
    assert "3 in the same place, 0 moved, 0 new, 0 gone." in text
    assert "The index has not changed since." in text
    assert "Another profile is active now: parts v2; the answer used parts v1." in text
    profiles.withdraw_published_profile()
    Answer.objects.update(profile_version=None)
    text = told(client_of(staff), answer)[1]
    assert "The profile parts v1 is gone; the active one was used." in text
    assert re.search(r"top k: 2 then, \d+ now", text)


def test_the_second_search_has_the_rights_of_whoever_looks(library, staff, ingest, settings):
    answer = answered(QUESTION)
    secret = Collection.objects.create(slug="secret", name="Secret", visibility="members")
    hidden = ingest(secret, "hidden.md", "# Hidden words\n\nHow heavy is the MX-9920-W pump? Secretly heavy.")
    clerk = make_staff("clerk", "view_answer")
    assert "Hidden words" in told(client_of(staff), answer)[1]
    html, text = told(client_of(clerk), answer)
    assert "Hidden words" not in text
    assert f"/documents/{hidden.pk}/" not in html
    assert "0 new" in text
    # Nor is told that a document was read which the clerk may not read.
    assert "was read since" not in text
    assert "The index has not changed since." in text
    CollectionGrant.objects.create(collection=secret, group=Group.objects.create(name="g"), role="reader")
    clerk.groups.add(Group.objects.get())
    assert "Hidden words" in told(client_of(clerk), answer)[1]
    asker, other = client_of(visitor="browser-1"), client_of(visitor="browser-2")
    path = f"/answers/{answer.pk}/debug/now/"
    assert [each.get(path).status_code for each in (asker, other)] == [404, 404]
    settings.CHAT_DEBUG_FOR_EVERYONE = True
    assert [each.get(path).status_code for each in (asker, other)] == [200, 404]
    Chunk.objects.filter(document__source="zoo.md").update(content="changed")
    Answer.objects.filter(pk=answer.pk).update(trace={})
    assert "nothing to explain" in told(client_of(staff), answer)[1]
