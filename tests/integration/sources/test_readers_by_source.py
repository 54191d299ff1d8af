"""Documents follow the rights of their source: a scripted Confluence, through changes of its rights."""

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group, User

from retrieval.models import Collection, Document
from retrieval.models.collection import Visibility
from tests.support.confluence import ConfluenceWithRights
from tests.support.sources import make_source, numbers, run_once

pytestmark = pytest.mark.django_db
PEOPLE = {"ann": ("staff", "hr"), "bob": ("staff",), "eve": ()}


@pytest.fixture(params=["cloud", "server"])
def wiki(request):
    remote = ConfluenceWithRights(request.param)
    remote.spaces = {"DOC": ["staff"], "HR": ["hr", "bob@example.org"]}
    remote.groups = {"staff": ["ann@example.org", "bob@example.org"], "hr": ["ann@example.org"]}
    for title in ("Alpha", "Beta", "Delta", "Gamma"):
        remote.put("DOC", title, f"The pump {title} weighs 30 kilograms.")
    remote.put("DOC", "Below", "The pump below weighs 40 kilograms.", above=["Beta"])
    remote.put("HR", "Wages", "The wages are 30 euros.")
    yield remote
    remote.close()


@pytest.fixture
def people(db):
    made = {}
    for name, groups in PEOPLE.items():
        made[name] = User.objects.create_user(name)
        made[name].groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
        EmailAddress.objects.create(user=made[name], email=f"{name}@example.org", verified=True)
    return made


@pytest.fixture
def library(collection):
    Collection.objects.filter(pk=collection.pk).update(visibility=Visibility.SIGNED_IN)
    collection.refresh_from_db()
    return collection


# A server does not show addresses.
NAMES = [f"{name} = {name}@example.org" for name in PEOPLE]


def source_of(wiki, library, space="DOC", **others):
    options = wiki.options_of(space, reader_names="\n".join(NAMES), **others)
    return make_source(library, "confluence", options, name=space)


def seen_by(user):
    found = Document.objects.readable_by(user).values_list("source", flat=True)
    return sorted(name.removesuffix(".html").partition("/")[2] for name in found)


def test_rights_of_spaces_and_pages_are_followed_through_three_changes(wiki, library, people):
    docs, wages = source_of(wiki, library), source_of(wiki, library, "HR")
    wiki.limits = {"Beta": ["hr"], "Gamma": ["eve@example.org"]}
    run = run_once(docs)
    assert (run.status, numbers(run)) == ("done", (5, 0, 0, 0, 0))
    run_once(wages)
    # Below inherits from Beta; Eve is named at Gamma, and does not see the space.
    assert seen_by(people["ann"]) == ["Alpha", "Below", "Beta", "Delta", "Wages"]
    assert seen_by(people["bob"]) == ["Alpha", "Delta", "Wages"]
    assert seen_by(people["eve"]) == []
    assert run.details["opened"] == [["staff", 2], ["hr", 2]]

    # First change: a page closes. Its content is the same.
    wiki.limits["Alpha"] = ["ann@example.org"]
    run = run_once(docs)
    assert numbers(run) == (0, 0, 5, 0, 0)
    assert (run.details["opened"], run.details["closed"]) == ([["ann@example.org", 1]], [["staff", 1]])
    assert seen_by(people["bob"]) == ["Delta", "Wages"]
    assert "Alpha" in seen_by(people["ann"])

    # Second change: what limited a page above goes, and the content changes with it.
    del wiki.limits["Beta"], wiki.limits["Alpha"]
    wiki.put("DOC", "Alpha", "The pump weighs 31 kilograms.")
    run = run_once(docs)
    assert numbers(run) == (0, 1, 4, 0, 0)
    assert seen_by(people["bob"]) == ["Alpha", "Below", "Beta", "Delta", "Wages"]

    # Third change: the spaces close, one to a single person and one to all but Bob.
    wiki.spaces = {"DOC": ["bob@example.org"], "HR": ["hr"]}
    assert run_once(docs).details["closed"] == [["staff", 4]]
    run_once(wages)
    assert seen_by(people["ann"]) == ["Wages"]
    assert seen_by(people["bob"]) == ["Alpha", "Below", "Beta", "Delta"]
    assert run_once(docs).details.get("closed") is None
