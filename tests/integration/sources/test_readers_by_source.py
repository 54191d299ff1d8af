"""Documents follow the rights of their source: a scripted Confluence, through changes of its rights."""

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group
from django.urls import reverse

from retrieval.models import Collection, Document, SourceItem
from retrieval.models.collection import Visibility
from retrieval.rights.audience import list_document_readers
from retrieval.rights.reasons import explain_document_access
from retrieval.sources import taking_readers
from retrieval.sources.options import save_source
from retrieval.sources.sync_runs import attempt_source_run, request_run
from tests.support.confluence import ConfluenceWithRights
from tests.support.people import make_reader
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
        made[name] = make_reader(name)
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


def test_a_run_that_cannot_read_rights_keeps_what_it_knows_and_closes_what_is_new(wiki, library, people):
    source = source_of(wiki, library)
    run_once(source)
    assert "Alpha" in seen_by(people["bob"])
    wiki.refused = ["space/"]
    wiki.put("DOC", "New", "The pump is new.")
    wiki.put("DOC", "Alpha", "The pump weighs 31 kilograms.")
    run = run_once(source)
    assert (run.status, numbers(run)) == ("done", (1, 1, 4, 0, 0))
    assert "New" not in seen_by(people["ann"])
    assert seen_by(people["bob"]) == ["Alpha", "Below", "Beta", "Delta", "Gamma"]
    [said] = [line for line in run.details["about_readers"] if "could not be read" in line]
    assert "The readers of 6 documents" in said

    # A listing that is refused with the restrictions is read without them.
    wiki.refused, wiki.has_trash = [], True
    wiki.limits["Alpha"] = ["hr"]
    run = run_once(source)
    assert (run.status, "Alpha" in seen_by(people["bob"]), "New" in seen_by(people["ann"])) == ("done", True, False)
    wiki.has_trash = False
    run_once(source)
    assert ("Alpha" in seen_by(people["bob"]), "New" in seen_by(people["ann"])) == (False, True)


def test_an_answer_that_leaves_out_names_opens_nothing(wiki, library, people):
    source = source_of(wiki, library)
    wiki.limits = {"Alpha": ["hr"]}
    run_once(source)
    # No reader of the space is named: what is known stays.
    wiki.spaces["DOC"] = []
    run = run_once(source)
    assert "does not name who may see the space" in run.details["about_readers"][0]
    assert seen_by(people["bob"]) == ["Below", "Beta", "Delta", "Gamma"]
    # A page is restricted to somebody whom the answer does not name.
    wiki.spaces["DOC"] = ["*"] if wiki.shape == "cloud" else ["staff"]
    wiki.hides_names = True
    run_once(source)
    assert "Alpha" not in seen_by(people["ann"])
    assert "Delta" in seen_by(people["bob"])


def test_members_that_cannot_be_read_admit_nobody(wiki, library, people):
    wiki.limits = {"Alpha": ["ann@example.org"], "Beta": ["staff"]}
    wiki.refused = ["group/"]
    run = run_once(source_of(wiki, library))
    assert seen_by(people["ann"]) == ["Below", "Beta", "Delta", "Gamma"]
    assert any("members of these groups could not be read" in line for line in run.details["notes"])


def test_a_space_that_is_open_is_open_as_far_as_the_collection_is(wiki, library, people, client):
    wiki.spaces["DOC"] = ["*"]
    wiki.limits = {"Beta": ["hr"]}
    run = run_once(source_of(wiki, library))
    assert seen_by(people["eve"]) == ["Alpha", "Delta", "Gamma"]
    assert run.details["opened"] == [["*", 3], ["hr", 2]]
    Collection.objects.filter(pk=library.pk).update(visibility=Visibility.GRANTED)
    assert seen_by(people["eve"]) == []


def test_switched_on_late_and_off_again(wiki, library, people):
    source = make_source(library, "confluence", {**wiki.options_of("DOC"), "takes_readers": False}, name="DOC")
    source.metadata = {"groups": ["staff", "hr"]}
    save_source(source)
    run = run_once(source)
    assert seen_by(people["bob"]) == ["Alpha", "Below", "Beta", "Delta", "Gamma"]
    assert not {"opened", "closed", "about_readers"} & {*run.details}
    assert not any(path.startswith(("space", "group")) for path in wiki.asked)
    assert SourceItem.objects.filter(readers__isnull=True).count() == 5

    # The source's metadata narrow too: only what both name is left.
    wiki.limits["Beta"] = ["hr"]
    source.options |= {"takes_readers": True, "reader_names": NAMES}
    save_source(source)
    run = run_once(source)
    assert seen_by(people["bob"]) == ["Alpha", "Delta", "Gamma"]
    assert run.details["closed"] == [["hr", 3], ["staff", 2]]
    source.metadata = {"groups": ["hr"], "team": "x"}
    save_source(source)
    assert seen_by(people["ann"]) == ["Below", "Beta"]
    assert Document.objects.get(source="DOC/Alpha.html").metadata == {"groups": [], "team": "x"}

    source.options |= {"takes_readers": False}
    save_source(source)
    assert {str(each.metadata) for each in Document.objects.all()} == {"{'team': 'x', 'groups': ['hr']}"}
    assert not SourceItem.objects.filter(readers__isnull=False).exists()
    source.metadata = {}
    save_source(source)
    assert [each.metadata for each in Document.objects.all()] == [{}] * 5


def test_a_curator_narrows_further_and_opens_nothing(wiki, library, people):
    source = source_of(wiki, library)
    run_once(source)
    alpha = Document.objects.get(source="DOC/Alpha.html")
    alpha.metadata = {}
    alpha.save()
    Document.objects.filter(source="DOC/Delta.html").update(metadata={"groups": ["hr", "strangers"]})
    run_once(source)
    assert seen_by(people["bob"]) == ["Alpha", "Below", "Beta", "Gamma"]
    assert seen_by(people["eve"]) == []
    # What the curator chose stays, whatever the source says later.
    wiki.spaces["DOC"] = ["*"]
    run_once(source)
    assert Document.objects.get(source="DOC/Delta.html").metadata == {"groups": ["hr", "strangers"]}
    assert "Alpha" in seen_by(people["eve"])
    assert "Delta" not in seen_by(people["bob"])


def test_a_preview_says_what_would_open_and_close_and_changes_nothing(wiki, library, people, admin):
    source = source_of(wiki, library)
    run = run_once(source, is_preview=True)
    assert run.details["opened"] == [["staff", 5]]
    assert not Document.objects.exists()
    run_once(source)
    wiki.limits = {"Alpha": ["hr"], "Beta": ["nobody@example.org"]}
    run = run_once(source, is_preview=True)
    assert (run.details["opened"], run.details["closed"]) == ([["hr", 1]], [["staff", 3]])
    assert "Alpha" in seen_by(people["bob"])
    page = admin.get(reverse("admin:retrieval_source_change", args=[source.pk])).content.decode()
    assert "<h3>Documents that closed, and to whom</h3><ul><li><strong>staff</strong>: 3</li></ul>" in page


def test_unknown_names_admit_nobody_and_are_named(wiki, library, people):
    Group.objects.create(name="mail:eve@example.org").user_set.add(people["eve"])
    wiki.spaces["DOC"] = ["Personnel", "strangers", "mail:eve@example.org"]
    options = wiki.options_of("DOC", reader_names="Personnel = hr")
    source = make_source(library, "confluence", options, name="DOC")
    run = run_once(source)
    assert seen_by(people["ann"]) == ["Alpha", "Below", "Beta", "Delta", "Gamma"]
    assert (seen_by(people["bob"]), seen_by(people["eve"])) == ([], [])
    assert run.details["about_readers"] == [
        "These names are unknown here, and admit nobody: mail:eve@example.org, strangers."
    ]


def test_a_deleted_document_comes_back_as_closed_as_it_was(wiki, library, people):
    source = source_of(wiki, library)
    wiki.limits = {"Alpha": ["hr"]}
    run_once(source)
    wiki.refused = ["space/"]
    Document.objects.get(source="DOC/Alpha.html").delete()
    run_once(source)
    assert ("Alpha" in seen_by(people["ann"]), "Alpha" in seen_by(people["bob"])) == (True, False)


def test_a_dead_workers_run_goes_on_with_its_counts(wiki, library, people, monkeypatch):
    source = source_of(wiki, library)
    run_once(source)
    wiki.spaces["DOC"] = ["hr"]
    real, done = taking_readers.ReadersBySource.change_readers, []

    def dies(self, item, *others):
        if len(done) == 2:
            done.append(None)
            raise RuntimeError
        done.append(item)
        real(self, item, *others)

    monkeypatch.setattr(taking_readers.ReadersBySource, "change_readers", dies)
    run = request_run(source)
    assert attempt_source_run(run.pk).status == "waiting"
    type(run).objects.filter(pk=run.pk).update(retry_at=None)
    run = attempt_source_run(run.pk)
    assert (run.status, run.details["closed"], run.details["opened"]) == ("done", [["staff", 5]], [["hr", 5]])


def test_the_reasons_name_the_source(wiki, library, people):
    wiki.limits = {"Alpha": ["hr"], "Beta": ["ann@example.org"], "Delta": ["nobody@example.org"]}
    source = source_of(wiki, library)
    run_once(source)
    told = {}
    for title in ("Alpha", "Beta", "Delta"):
        document = Document.objects.get(source=f"DOC/{title}.html")
        told[title] = {name: explain_document_access(user, document).rule for name, user in people.items()}
        if title != "Delta":
            assert all("The source DOC names" in each.rule for each in list_document_readers(document)[:1])
    assert told["Alpha"]["ann"].endswith("and the account is in hr. The source DOC names hr.")
    assert told["Alpha"]["bob"].endswith("in none of them. The source DOC names hr.")
    assert told["Beta"]["ann"].endswith("named by its address. The source DOC names ann@example.org.")
    assert told["Delta"]["eve"].endswith("The source DOC names nobody who may read it here.")
    # Names that the source's metadata leave out are not told.
    source.metadata = {"groups": ["care"]}
    save_source(source)
    alpha = Document.objects.get(source="DOC/Alpha.html")
    assert explain_document_access(people["eve"], alpha).rule.endswith(
        "The source DOC names nobody who may read it here."
    )
