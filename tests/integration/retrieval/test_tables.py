"""Tables from the file to the computed answer: kept with their document, and hidden with it."""

import pytest

from core.recent import LruCache
from retrieval.documents.drafts.copying import copy_documents
from retrieval.models import Chunk, Collection, Document, Table, TableRow
from retrieval.search.passage_rows import load_passages
from retrieval.search.shown_tables import bind_nearness_to_table, show_table
from retrieval.tables import stored_tables
from retrieval.tables.answering import answer_from_tables
from retrieval.tables.results import TableOperation
from retrieval.tables.stored_tables import find_candidate_tables
from retrieval.types import SearchFilters
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db

PARTS = """sku,name,category,weight_g,price_eur,bronze
MX-1,Pump one,pump,3450,418.50,yes
MX-2,Pump two,pump,5200,96.00,no
MX-3,Pump three,pump,,664.00,yes
BV-1,Ball valve,valve,210,12.40,no
GV-1,Gate valve,valve,2100,48.00,yes
"""
HOURS = """# Library

The library serves the town.

## Opening hours

| Branch | Weekdays | Phone |
|---|---|---|
| Central | 8:30 - 20:00 | 555-0100 |
| Harbour | 10:00 - 18:00 | 555-0122 |
"""


library = library_of({"parts.csv": PARTS, "library.md": HOURS})


def ask(question, *collections, hits=()):
    """Answer as for a search that found all passages of the collections, unless ``hits`` are given."""
    filters = SearchFilters(collections=tuple(collection.pk for collection in collections))
    found = load_passages(Chunk.objects.filter(collection__in=filters.collections).values_list("pk", flat=True))
    candidates = find_candidate_tables(question, filters, hits or list(found.values()))
    return answer_from_tables(question, candidates, bind_nearness_to_table, "en")


def texts(result):
    return [[cell.text for cell in row.cells] for row in result.rows]


def test_rows_are_kept_with_their_values_and_the_places_of_their_cells(library):
    table = Table.objects.get(document__source="parts.csv")
    assert (table.row_count, table.columns[3]) == (5, ["weight_g", "number", "g"])
    assert table.document.text.text[table.start : table.end] == table.document.text.text.rstrip("\n")
    third = table.rows.get(ordinal=2)
    assert third.values == ["MX-3", "Pump three", "pump", None, 664.0, True]
    start, end = third.cells[4]
    assert table.document.text.text[start:end] == "664.00"


def test_a_look_up_names_the_passage_and_the_place_of_its_row(library):
    result = ask("How heavy is the mx2?", library)
    assert (result.operation, texts(result)) == (TableOperation.LOOK_UP, [["MX-2", "5200"]])
    (row,) = result.rows
    passage = load_passages([row.chunk_id])[row.chunk_id]
    assert passage.start <= row.start < row.end <= passage.end
    assert "5200" in passage.content


def test_figures_are_computed_over_all_rows(library):
    cheapest, mean, count = (
        ask(question, library)
        for question in ("What is the cheapest pump?", "average weight of the pumps", "How many pumps are bronze?")
    )
    assert texts(cheapest) == [["MX-2", "96.00", "pump"]]
    assert (cheapest.matched, cheapest.total) == (3, 5)
    # A row without a weight does not count.
    assert (mean.value, mean.matched) == ("4325", 2)
    assert (count.value, count.conditions) == ("2", ("category = pumps", "bronze = yes"))
    assert (count.answers, count.ordinals, count.total) == (("2",), (1, 3), 5)
    # No row has it.
    assert ask("How many valves cost more than 100 euro?", library) is None


def test_rows_are_shown_where_each_word_has_a_part_but_no_value_is_asked_for(library):
    shown = ask("Of the pumps that have more weight, MX-1 or MX-2?", library)
    assert (shown.operation, [row[0] for row in texts(shown)]) == (TableOperation.ROWS, ["MX-1", "MX-2"])
    # Words that only name cells may occur in any text, unless a word means the rows.
    assert ask("How does a pump work?", library) is None
    products = ask("Which products are valves and cost less than 20 euros?", library)
    assert (products.conditions, [row[0] for row in texts(products)]) == (
        ("category = valves", "price < 20 euro"), ["BV-1"],
    )  # fmt: skip
    assert [row[0] for row in texts(ask("Which products are valves?", library))] == ["BV-1", "GV-1"]
    assert ask("Which products are allowed?", library) is None


def test_tables_of_prose_are_looked_up_in(library):
    result = ask("phone of the Harbour branch", library)
    assert texts(result) == [["Harbour", "555-0122"]]
    assert result.is_markup


def test_tables_of_other_collections_are_never_seen(library):
    other = Collection.objects.create(name="Other", slug="other")
    passages = list(load_passages(Chunk.objects.values_list("pk", flat=True)).values())
    assert ask("How heavy is the MX-2?", other, hits=passages) is None
    assert ask("How heavy is the MX-2?", other, library) is not None
    document = Document.objects.get(source="library.md")
    filters = SearchFilters(collections=(library.pk,), documents=(document.pk,))
    candidates = find_candidate_tables("How heavy is the MX-2?", filters, passages)
    assert answer_from_tables("How heavy is the MX-2?", candidates, bind_nearness_to_table, "en") is None


def test_a_new_version_replaces_the_tables_and_a_deletion_removes_them(library, ingest):
    ingest(library, "parts.csv", PARTS.replace("5200", "5300"))
    assert texts(ask("weight of the MX-2", library)) == [["MX-2", "5300"]]
    assert Table.objects.filter(document__source="parts.csv").count() == 1
    Document.objects.get(source="parts.csv").delete()
    assert not TableRow.objects.filter(table__document__source="parts.csv").exists()
    assert ask("weight of the MX-2", library) is None


def test_a_copy_of_a_document_has_its_tables(library):
    other = Collection.objects.create(name="Copy", slug="copy")
    copy_documents(list(library.documents.all()), other)
    result = ask("weight of the MX-2", other)
    assert texts(result) == [["MX-2", "5200"]]
    assert Document.objects.get(pk=result.document_id).collection == other
    copy_documents(list(library.documents.all()), other)
    assert Table.objects.filter(document__collection=other).count() == 2


def test_a_table_that_is_read_in_pages_says_the_same(library, monkeypatch):
    monkeypatch.setattr(stored_tables, "_MOST_ROWS_READ", 1)
    monkeypatch.setattr(stored_tables, "_ROWS_OF_PAGE", 2)
    monkeypatch.setattr(stored_tables, "_kept", LruCache(1))
    assert texts(ask("How heavy is the mx2?", library)) == [["MX-2", "5200"]]
    assert texts(ask("What is the cheapest pump?", library)) == [["MX-2", "96.00", "pump"]]


def test_cells_that_are_not_of_their_columns_kind_are_known(collection, ingest):
    rows = "".join(f"A{number},{number}\n" for number in range(20))
    ingest(collection, "points.csv", f"name,points\n{rows}")
    assert texts(ask("Who has the most points?", collection)) == [["A19", "19"]]
    ingest(collection, "points.csv", f"name,points\n{rows}B,31 (two)\n")
    assert ask("Who has the most points?", collection) is None


def test_rows_that_match_are_shown_where_no_value_is_asked_for(library):
    result = ask("pump, bronze", library)
    assert (result.operation, result.is_computed, result.answers) == (TableOperation.ROWS, False, ())
    assert [cells[0] for cells in texts(result)] == ["MX-1", "MX-3"]


def show(question, collection):
    found = load_passages(Chunk.objects.filter(collection=collection).values_list("pk", flat=True))
    passages = list(found.values())
    candidates = find_candidate_tables(question, SearchFilters(collections=(collection.pk,)), passages)
    return show_table(question, candidates, passages, "en")


def test_a_shown_table_says_of_its_rows_and_cells_what_is_in_them(collection, ingest):
    ingest(
        collection,
        "filters.md",
        "# Filters\n\n| Filter | Example | Notes | |\n|---|---|---|---|\n"
        '| f | f:2.8 | Aperture (F-Number) | |\n| name | name:"IMG_*" | **Names**, without `paths` | |\n',
    )
    table = show("which filter is for the aperture", collection)
    assert "Notes contains aperture" in table.summary
    # A column that has neither a name nor a filled cell is left out, and an asterisk that marks no text stays.
    assert table.columns == ("Filter", "Notes", "Example")
    assert ("name", 'name:"IMG_*"', "Names, without paths") in show("a list of filters", collection).rows


def test_a_shown_table_says_what_whole_cells_are(library):
    assert "category = pump" in show("which pump is heavy", library).summary
