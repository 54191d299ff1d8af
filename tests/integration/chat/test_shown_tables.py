"""The table that is shown with an answer, and the cases that show none."""

import pytest

from retrieval.models import Document
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

PARTS = """sku,name,category,weight_g,price_eur
MX-1,Pump one,pump,3450,418.50
MX-2,Pump two,pump,5200,96.00
MX-3,Pump three,pump,4100,664.00
BV-1,Ball valve,valve,210,12.40
GV-1,Gate valve,valve,2100,48.00
"""
library = library_of(
    {
        "parts.csv": PARTS,
        "service.md": "# Service\n\n| Interval | Work | Pumps |\n|---|---|---|\n"
        "| 3 months | Listen, inspect, vent | All MX |\n| 5 years | Replace the seal kit | All |\n",
        "passwords.md": "# Passwords\n\nA password for the console has at least 14 characters.\n",
    }
)


def ask(api, question):
    return api.post("/api/v1/ask/", {"question": question}, format="json").json()


def test_the_api_has_the_rows_behind_a_value_filtered_and_sorted(library, api, client):
    table = ask(api, "What is the cheapest pump?")["table"]
    document = Document.objects.get(source="parts.csv")
    assert table["document"] == {"id": document.pk, "title": str(document), "url": "", "collection": library.slug}
    assert table["columns"][:3] == ["sku", "name", "price (eur)"]
    assert table["rows"][0][:3] == ["MX-2", "Pump two", "96.00"]
    assert [table[name] for name in ("row_count", "matched", "shown", "sorted_by")] == [5, 3, 3, "price (eur)"]
    assert table["summary"] == "3 of 5 rows: category = pump, sorted by price (eur), the lowest first."
    page = client.get(table["url"]).content.decode()
    assert page.index("MX-2") < page.index("MX-1") < page.index("MX-3")
    assert "BV-1" not in page


def test_where_nothing_is_sure_the_table_comes_closest(library, api):
    body = ask(api, "Which of the pumps, Pump one say, would my aunt in Delft prefer for her birthday?")
    assert body["table"]["rows"][0][0] == "MX-1"
    if body["refused"]:
        assert body["state"] == "closest"
        assert body["table"]["summary"] in body["answer"]


@pytest.mark.parametrize("question", ["How do I vent the pump?", "How to vent a pump"])
def test_a_cell_is_no_answer_to_how_something_is_done(library, api, question):
    body = ask(api, question)
    assert "Pumps" in body["answer"]
    assert "Pumps of" not in body["answer"]


def test_questions_about_other_things_show_no_table(library, api):
    assert "table" not in ask(api, "How long must a password for the console be?")


def test_the_page_shows_the_table_with_a_link_to_all_rows_and_no_row_twice(library, mine):
    def page(question):
        body = mine.post("/api/v1/ask/", {"question": question}, content_type="application/json").json()
        return mine.get(f"/c/{body['conversation']}/").content.decode()

    shown = page("What is the cheapest pump?")
    assert '<p class="table-caption">' in shown
    assert shown.count("<td>Pump three</td>") == 1
    assert "Filter and sort all 5 rows" in shown
    # The text of this answer already contains the rows, so they are not shown again.
    listed = page("pump, price")
    assert "Filter and sort all 5 rows" in listed
    assert listed.count("Pump three") == listed.count("Pump two")
    assert "<td>Pump three</td>" not in listed.partition("table-result")[2].partition('class="table-more"')[0]
    assert "table-result" not in page("How long must a password for the console be?")
