"""Search profiles in the admin: forms, versions, publication, and the playground."""

import json
import re
from dataclasses import replace

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.html import escape

from core import readiness
from core.dataclass_json import to_json
from retrieval.exceptions import SearchUnavailable
from retrieval.models import SearchProfile, SearchProfileVersion
from retrieval.profile_settings import CLASS_WEIGHTS, ProfileSettings
from retrieval.protocols import Reranker
from retrieval.search import pipeline as search_module
from retrieval.search.profiles import profile_comparison, profiles
from retrieval.types import MetadataBoost, QueryClass, RetrieverWeights, SearchMethod
from tests.support.faults import forget_findings
from tests.support.pages import messages, staff

pytestmark = pytest.mark.django_db
# Searches need it: the retrievers have connections of their own.
on_several_connections = pytest.mark.django_db(transaction=True)

CHANGELIST = "/admin/retrieval/searchprofile/"
ADD = f"{CHANGELIST}add/"
PLAYGROUND = f"{CHANGELIST}playground/"
RRF = ProfileSettings(method=SearchMethod.RRF)
# The profile has no effects beyond the two scores.
PLAIN = ProfileSettings(method=SearchMethod.ZSCORE)


class Backwards(Reranker):
    """A reranker that turns the list around, and is sure of it."""

    def score(self, query, chunk_ids, timeout_seconds):
        return {pk: float(place) for place, pk in enumerate(chunk_ids)}


@pytest.fixture(autouse=True)
def _errors_are_pages(client):
    client.raise_request_exception = False


@pytest.fixture
def profile():
    return SearchProfile.objects.create(slug="default", name="Default")


@pytest.fixture
def version(profile):
    return profiles.add_version(profile, RRF, note="ranks only")


@pytest.fixture
def library(collection, ingest):
    ingest(collection, "pump.md", "# MX-9920-W\n\nThe MX-9920-W is a <b>circulation</b> pump.", metadata={"year": 2025})
    ingest(collection, "valve.md", "# Valves\n\nA ball valve closes with a quarter turn, unlike a pump.")
    ingest(collection, "hours.md", "# Opening hours\n\nThe warehouse is open from eight until five.")
    return collection


def change(profile):
    return reverse("admin:retrieval_searchprofile_change", args=[profile.pk])


def publish(version):
    return reverse("admin:retrieval_searchprofile_publish", args=[version.pk])


def body(settings=None, **changed):
    """Return a browser's form data for these settings."""
    sent = {"name": "Default", "slug": "default", "description": "", "note": ""}
    for name, value in to_json(settings or ProfileSettings()).items():
        if isinstance(value, bool):
            sent |= {name: "on"} if value else {}
        else:
            sent[name] = json.dumps(value) if isinstance(value, dict | list) else "" if value is None else value
    return {**sent, **changed}


def test_a_profile_is_made_with_its_first_version(admin, admin_user, settings):
    settings.RERANKERS = {"tiny": {"BACKEND": "nowhere.Tiny"}}
    wanted = ProfileSettings(
        method=SearchMethod.ADAPTIVE,
        weights=RetrieverWeights(0.25, 0.75),
        class_weights={**CLASS_WEIGHTS, QueryClass.CODE: RetrieverWeights(0.1, 0.9)},
        score_threshold=-1.5,
        fuzzy=False,
        reranker="tiny",
        rerank_weight=None,
        metadata_boosts=(
            MetadataBoost("year", 2025, 1.5),
            MetadataBoost("room of", "7", -0.5),
            MetadataBoost("current", True, 1 / 3),
        ),
        context_blocks=5,
    )
    response = admin.post(ADD, body(wanted, note="first try"), follow=True)
    made = SearchProfileVersion.objects.get()
    assert response.redirect_chain == [(change(made.profile), 302)]
    assert made.read_settings() == wanted
    assert (str(made), made.note, made.created_by, made.is_published) == ("default v1", "first try", admin_user, False)
    assert "Saved: default v1. It takes effect when it is published." in messages(response)
    assert response.content.decode().count("<script>") == 0
    assert "style=" not in response.content.decode()


def test_an_edit_is_a_new_version_and_the_old_one_stays(admin, profile, version):
    response = admin.post(change(profile), body(replace(RRF, rrf_k=20), note="steeper", name="Renamed"), follow=True)
    assert [(str(v), v.read_settings().rrf_k, v.note) for v in profile.versions.all()] == [
        ("default v2", 20, "steeper"),
        ("default v1", 60, "ranks only"),
    ]
    profile.refresh_from_db()
    assert profile.name == "Renamed"
    assert "v2" in LogEntry.objects.latest("pk").get_change_message()
    assert response.status_code == 200


def test_the_form_is_filled_in_with_the_newest_or_the_wanted_version(admin, profile, version):
    profiles.add_version(profile, replace(RRF, rrf_k=20, metadata_boosts=(MetadataBoost("year", 2025, 1),)))
    form = admin.get(change(profile)).context["adminform"].form
    assert form["rrf_k"].value() == 20
    assert form["metadata_boosts"].value() == '[{"key": "year", "value": 2025, "weight": 1}]'
    assert form["weights"].value() == ""
    form = admin.get(f"{change(profile)}?from=1").context["adminform"].form
    assert form["rrf_k"].value() == 60
    assert admin.get(f"{change(profile)}?from=99").context["adminform"].form["rrf_k"].value() == 20
    assert admin.get(f"{change(profile)}?from=x").status_code == 200

    # Sending the page's form back unchanged changes no setting.
    admin.post(change(profile), body(profile.versions.first().read_settings()))
    assert profile.versions.count() == 2


@pytest.mark.parametrize(
    ("changed", "field", "told"),
    [
        ({"top_k": "0"}, "top_k", "greater than or equal to 1"),
        ({"top_k": "51"}, "top_k", "not be larger than the depth of 50"),
        ({"method": "magic"}, "method", "valid choice"),
        ({"weights": "vector 1"}, "weights", "valid JSON"),
        ({"class_weights": '{"code": {"vector": 1, "lexical": 1}}'}, "class_weights", "no weights for conceptual"),
        ({"reranker": "gone"}, "reranker", "valid choice"),
        ({"metadata_boosts": '[{"key": "a\\u0000", "value": "x", "weight": 1}]'}, "metadata_boosts", "NUL"),
        ({"metadata_boosts": "7"}, "metadata_boosts", "cannot be 7"),
    ],
)
def test_a_bad_setting_is_told_at_its_field_and_nothing_is_saved(admin, profile, version, changed, field, told):
    response = admin.post(change(profile), body(RRF, **changed))
    assert response.status_code == 200
    errors = response.context["adminform"].form.errors
    assert set(errors) == {field}
    assert told in " ".join(errors[field])
    assert profile.versions.count() == 1


def test_a_reranker_that_is_gone_must_be_replaced(admin, profile):
    profiles.add_version(profile, ProfileSettings(reranker="gone"))
    assert "gone (removed)" in admin.get(change(profile)).content.decode()
    response = admin.post(change(profile), body(ProfileSettings(reranker="gone")))
    assert "no longer has a reranker of this name" in str(response.context["adminform"].form.errors["reranker"])


def test_publishing_and_rolling_back_are_one_click_each(admin, admin_user, profile, version):
    second = profiles.add_version(profile, replace(RRF, rrf_k=20, weights=RetrieverWeights(2, 1)))
    html = admin.get(change(profile)).content.decode()
    assert "Differences to built-in" in html
    assert admin.get(publish(version)).status_code == 405
    response = admin.post(publish(version), follow=True)
    assert response.redirect_chain == [(change(profile), 302)]
    assert messages(response) == ["In use: default v1."]
    html = response.content.decode()
    assert "Differences to default v1" in html
    assert "2 settings" in html
    assert escape('{"vector": 2, "lexical": 1}') in html
    assert publish(second) in html
    assert publish(version) not in html
    admin.post(publish(second))
    admin.post(publish(version))
    assert profiles.active_profile().name == "default v1"
    told = [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]
    assert told == ["Published version 1.", "Published version 2.", "Published version 1."]
    version.refresh_from_db()
    assert version.published_by == admin_user

    response = admin.post(reverse("admin:retrieval_searchprofile_withdraw"), follow=True)
    assert messages(response)[-1] == "The built-in profile is in use."
    assert profiles.active_profile().name == "built-in"
    assert LogEntry.objects.latest("pk").get_change_message() == "Withdrew version 1."


@on_several_connections
def test_a_version_that_cannot_be_read_is_told_everywhere(admin, client, profile, version):
    profiles.publish_profile(version)
    SearchProfileVersion.objects.update(settings={"magic": 1})
    for address in (CHANGELIST, change(profile), PLAYGROUND):
        html = admin.get(address).content.decode()
        assert "The published version cannot be read" in html
        assert "magic: is not a setting" in html
    response = admin.post(publish(version), follow=True)
    assert "Not published: default v1. magic: is not a setting" in messages(response)[0]
    response = admin.get(PLAYGROUND, {"question": "pump", "b": version.pk})
    assert "cannot be read" in str(response.context["form"].errors["b"])
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert "search_profile" in ready.json()["degraded"]
    assert "magic" not in ready.content.decode()


def test_the_profile_in_force_cannot_be_deleted(admin, profile, version):
    delete = reverse("admin:retrieval_searchprofile_delete", args=[profile.pk])
    profiles.publish_profile(version)
    assert admin.post(delete, {"post": "yes"}).status_code == 403
    assert "delete_selected" not in admin.get(CHANGELIST).content.decode()
    profiles.withdraw_published_profile()
    admin.post(delete, {"post": "yes"})
    assert not SearchProfile.objects.exists()
    assert not SearchProfileVersion.objects.exists()


@on_several_connections
def test_what_may_be_done_depends_on_permissions(client, profile, version, library):
    client.force_login(staff())
    for address in (CHANGELIST, change(profile), PLAYGROUND):
        assert client.get(address).status_code == 403
    User.objects.all().delete()
    client.force_login(staff("view_searchprofile"))
    for address in (CHANGELIST, change(profile), f"{PLAYGROUND}?question=pump&b={version.pk}"):
        html = client.get(address)
        assert html.status_code == 200
        assert publish(version) not in html.content.decode()
    assert client.post(publish(version)).status_code == 403
    assert client.post(reverse("admin:retrieval_searchprofile_withdraw")).status_code == 403
    assert client.post(change(profile), body(RRF)).status_code == 403
    client.logout()
    assert client.get(PLAYGROUND).status_code == 302
    assert client.post(publish(version)).status_code == 302
    assert profiles.find_published_version() is None


@on_several_connections
@pytest.mark.parametrize("enabled", [True, False])
def test_the_switch_is_announced(admin, profile, version, settings, enabled, monkeypatch):
    monkeypatch.setattr(readiness, "DEADLINE_SECONDS", 60)
    profiles.publish_profile(version)
    settings.RETRIEVAL_HYBRID_ENABLED = enabled
    for address in (CHANGELIST, change(profile), PLAYGROUND):
        assert ("Hybrid search is switched off" in admin.get(address).content.decode()) is not enabled
    forget_findings()
    ready = admin.get("/readyz").json()
    assert ready["checks"]["search_profile"]["detail"].startswith("default v1")
    assert ("by vectors alone" in ready["checks"]["search_profile"]["detail"]) is not enabled
    assert ready["degraded"] == []


def try_out(admin, **query):
    response = admin.get(PLAYGROUND, query)
    assert response.status_code == 200
    return response


@on_several_connections
def test_two_profiles_side_by_side(admin, profile, library):
    words = profiles.add_version(profile, replace(PLAIN, method=SearchMethod.LEXICAL))
    boosted = profiles.add_version(
        profile, replace(PLAIN, metadata_boosts=(MetadataBoost("year", 2025, -10),), top_k=2)
    )
    response = try_out(admin, question="MX-9920-W circulation valve", a=words.pk, b=boosted.pk, collection="library")
    first, second = response.context["comparison"].sides
    assert [side.profile.name for side in (first, second)] == ["default v1", "default v2"]
    assert [row.passage.source for row in first.rows] == ["pump.md", "valve.md"]
    assert [row.passage.source for row in second.rows] == ["valve.md", "hours.md"]
    assert [(row.other_rank, row.ranks_gained) for row in first.rows] == [(None, 0), (1, -1)]
    assert [(row.other_rank, row.ranks_gained) for row in second.rows] == [(2, 1), (None, 0)]
    assert [row.candidate.dropped for row in second.dropped] == ["not among the first 2"]
    assert second.dropped[0].other_rank == 1
    for side in (first, second):
        for row in (*side.rows, *side.dropped):
            assert sum(part.contribution for part in row.parts) == pytest.approx(row.candidate.score)
    html = response.content.decode()
    assert "Passages in both lists: 1 (A has 2, B has 2)." in html
    assert "only in A" in html
    assert "only in B" in html
    assert "1 place higher than in A" in html
    assert "Dropped: not among the first 2" in html
    assert "year=2025" in html
    assert "&lt;b&gt;circulation&lt;/b&gt;" in html
    assert f'href="{escape(first.rows[0].address)}"' in html
    assert admin.get(first.rows[0].address).status_code == 200
    assert "style=" not in html
    assert len(re.findall('<svg class="ragsite-bar', html)) >= 8


@on_several_connections
def test_a_rerank_is_shown_as_a_move(admin, profile, library, settings):
    settings.RERANKERS = {"backwards": {"BACKEND": f"{__name__}.Backwards"}}
    plain = profiles.add_version(profile, PLAIN)
    version = profiles.add_version(profile, replace(PLAIN, reranker="backwards", rerank_weight=None))
    response = try_out(admin, question="Which pump is there?", a=plain.pk, b=version.pk)
    second = response.context["comparison"].sides[1]
    assert [row.candidate.rerank.rank_before for row in second.rows] == [3, 2, 1]
    for row in second.rows:
        assert sum(part.contribution for part in row.parts) == pytest.approx(row.candidate.score)
    html = response.content.decode()
    assert "was #3 → #1" in html
    assert "reranked by" in html


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"question": ""}, "question"),
        ({"question": "pump", "collection": "nowhere"}, "collection"),
        ({"question": "pump", "a": "999999"}, "a"),
        ({"question": "pump", "top_k": "0"}, "top_k"),
    ],
)
def test_a_bad_question_is_told_at_its_field(admin, query, field):
    response = try_out(admin, **query)
    assert set(response.context["form"].errors) == {field}
    assert "comparison" not in response.context


@on_several_connections
def test_one_side_that_fails_leaves_the_other(admin, profile, version, library, monkeypatch):

    def search(question, filters, *, profile, **options):
        if profile.name == "built-in":
            raise SearchUnavailable("The search cannot answer at the moment.")
        return search_module.search(question, filters, profile=profile, **options)

    monkeypatch.setattr(profile_comparison, "search", search)
    html = try_out(admin, question="pump", a="built-in", b=version.pk).content.decode()
    assert "The search cannot answer at the moment." in html
    assert "pump.md" in html or "MX-9920-W" in html
