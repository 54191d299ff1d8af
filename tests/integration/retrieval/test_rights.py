"""Rights to read collections and documents, in each of the retrievers."""

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import IntegrityError, connection, transaction

from chat.streaming import answer_cache
from retrieval.index.active_embedder import active_embedder
from retrieval.index.vector_index import get_index_name
from retrieval.models import Chunk, Collection, CollectionGrant, Document, Visibility
from retrieval.rights.search_filters import build_filters, build_unrestricted_filters, hash_restrictions
from retrieval.search.passage_rows import load_passages
from retrieval.search.pipeline import search
from retrieval.search.ranking import vector_ranker as dense_ranker
from retrieval.search.ranking.lexical_query import build_queries
from retrieval.search.ranking.lexical_ranker import count_matches
from retrieval.search.understanding.vocabulary import CollectionVocabulary
from retrieval.tables.stored_tables import find_candidate_tables
from retrieval.types import ANYBODY, ReaderRights, SearchFilters, SearchMethod
from tests.support.libraries import library_of
from tests.support.people import make_reader, make_staff, make_superuser

pytestmark = pytest.mark.django_db(transaction=True)

ROLE = CollectionGrant.Role


def collection_of(visibility):
    return Collection.objects.create(slug=visibility, name=visibility, visibility=visibility)


def readable(user):
    return set(Collection.objects.readable_by(user).values_list("slug", flat=True))


def test_visibility_and_grants():
    for visibility in Visibility:
        collection_of(visibility)
    reader, staff = make_reader("reader"), make_staff("staff")
    assert readable(AnonymousUser()) == {"public"}
    assert readable(reader) == {"public", "signed_in"}
    assert readable(staff) == {"public", "signed_in", "staff"}
    assert readable(make_superuser("boss")) == set(Visibility.values)
    CollectionGrant.objects.create(collection=Collection.objects.get(slug="staff"), user=reader)
    group = Group.objects.create(name="care")
    CollectionGrant.objects.create(collection=Collection.objects.get(slug="granted"), group=group, role=ROLE.CURATOR)
    assert readable(reader) == {"public", "signed_in", "staff"}
    reader.groups.add(group)
    assert readable(reader) == set(Visibility.values)
    assert set(Collection.objects.curated_by(reader).values_list("slug", flat=True)) == {"granted"}
    assert not Collection.objects.managed_by(reader).exists()
    User.objects.filter(pk=reader.pk).update(is_active=False)
    assert readable(User.objects.get(pk=reader.pk)) == {"public"}


def test_a_grant_is_to_a_group_or_a_user():
    collection = collection_of("granted")
    user, group = make_reader("one"), Group.objects.create(name="care")
    for holders in ({}, {"user": user, "group": group}):
        with pytest.raises(IntegrityError), transaction.atomic():
            CollectionGrant.objects.create(collection=collection, **holders)


TABLE = "| Room | Code |\n|---|---|\n| boiler | 41 |\n| cellar | 42 |\n"
library = library_of(
    {
        "open.md": "# Open\n\nThe boiler is behind the green door.",
        "closed.md": f"# Closed\n\nThe boiler is heated with zalvorquim. Its part is QX-4711-B.\n\n{TABLE}",
    },
    closed={"groups": ["care"]},
)


@pytest.fixture
def member():
    user = make_reader("member")
    user.groups.add(Group.objects.create(name="care"))
    return user


def sources(user, question, **options):
    return {hit.passage.source for hit in search(question, build_filters(user), **options).hits}


@pytest.mark.parametrize("method", [SearchMethod.LEXICAL, SearchMethod.VECTOR, None])
def test_each_retriever_leaves_out_what_is_narrowed_to_others(library, member, method):
    question = "Is the boiler behind a door, or heated?"
    assert sources(member, question, method=method) == {"open.md", "closed.md"}
    assert sources(make_reader("other"), question, method=method) == {"open.md"}
    assert sources(AnonymousUser(), question, method=method) == {"open.md"}
    member.groups.clear()
    assert sources(member, question, method=method) == {"open.md"}


def test_filters_that_name_no_reader_find_no_narrowed_document(library):
    found = search("How is the boiler heated?", SearchFilters(collections=(library.pk,)))
    assert {hit.passage.source for hit in found.hits} == {"open.md"}


def test_what_names_no_group_of_the_reader_hides_the_document(library, member):
    closed = Document.objects.filter(source="closed.md")
    for value in [[], "", None, {}, {"care": 1}, 7, [7], [["care"]], "Care", ["car"]]:
        closed.update(metadata={"groups": value})
        assert not closed.readable_by(member).exists(), value
        assert sources(member, "How is the boiler heated?") == {"open.md"}, value
    closed.update(metadata={"groups": "care"})
    assert closed.readable_by(member).exists()
    closed.update(metadata={"department": "care"})
    assert closed.readable_by(AnonymousUser()).exists()


def test_who_curates_sees_all_documents(library):
    closed = Document.objects.filter(source="closed.md")
    staff = make_staff("staff")
    assert not closed.readable_by(staff).exists()
    staff.user_permissions.add(Permission.objects.get(codename="change_document"))
    assert closed.readable_by(User.objects.get(pk=staff.pk)).exists()
    curator = make_reader("curator")
    CollectionGrant.objects.create(collection=library, user=curator, role=ROLE.CURATOR)
    assert closed.readable_by(curator).exists()


def test_no_condition_where_nothing_is_narrowed(library, member):
    assert build_filters(AnonymousUser()).readers == (ANYBODY,)
    assert build_filters(member).readers == (ReaderRights(groups=("care",)),)
    Document.objects.filter(source="closed.md").update(metadata={})
    assert build_filters(AnonymousUser()).readers == ()
    assert build_unrestricted_filters().readers == ()


def test_words_of_hidden_documents_are_neither_meant_nor_suggested(library, member):
    theirs, others = build_filters(member), build_filters(AnonymousUser())

    def expansions(filters):
        queries = build_queries("zalvorqim", filters.collections, readers=filters.readers)
        return {each.lexeme for query in queries for meant in query.expansions.values() for each in meant}

    assert "zalvorquim" in expansions(theirs)
    assert expansions(others) == set()
    for filters, near, codes in ((theirs, ["zalvorquim"], ["QX-4711-B"]), (others, [], [])):
        vocabulary = CollectionVocabulary(filters.collections, filters.readers)
        assert [each.text for each in vocabulary.find_near_words("zalvorqim")] == near
        assert vocabulary.find_similar_codes("qx4711c") == codes
    vocabulary = CollectionVocabulary(others.collections, others.readers)
    assert vocabulary.find_unknown_words("zalvorquim boiler") == ["zalvorquim"]
    assert "zalvorquim" not in repr(search("What is zalvorqim?", others).trace)
    assert count_matches("zalvorquim", others) == 0
    assert count_matches("zalvorquim", theirs) == 1


def test_tables_of_hidden_documents_are_no_candidates(library, member):
    question = "Which code has the cellar?"
    hits = list(load_passages(Chunk.objects.values_list("pk", flat=True)).values())
    assert find_candidate_tables(question, build_filters(member), hits)
    assert not find_candidate_tables(question, build_filters(AnonymousUser()), hits)


def test_the_key_of_a_cached_answer_changes_with_what_is_hidden(library, member):
    theirs, others = build_filters(member), build_filters(AnonymousUser())
    assert answer_cache.build_key("Why?", theirs) != answer_cache.build_key("Why?", others)
    before = hash_restrictions(theirs.collections, theirs.readers)
    Document.objects.filter(source="open.md").update(metadata={"groups": ["law"]})
    assert hash_restrictions(theirs.collections, theirs.readers) != before


def test_the_vector_index_is_used_with_the_condition(library, monkeypatch):
    """The nearest rows are read in the order of the index, and each is checked, as for any other filter."""
    monkeypatch.setattr(dense_ranker, "EXACT_UP_TO", 0)
    statements = []
    fetch = dense_ranker.fetch_rows

    def explained(sql, parameters):
        if "ORDER BY" in sql:
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
            statements.append("\n".join(line for (line,) in fetch(f"EXPLAIN {sql}", parameters)))
        return fetch(sql, parameters)

    monkeypatch.setattr(dense_ranker, "fetch_rows", explained)
    assert sources(AnonymousUser(), "How is the boiler heated?", method=SearchMethod.VECTOR) == {"open.md"}
    assert f"Index Scan using {get_index_name(active_embedder())}" in statements[0]
    assert "metadata" in statements[0]
