"""Computed answers over tables, in the API's response and in the database."""

import pytest

from retrieval.models import Document
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

PARTS = """sku,category,weight_g,price_eur
MX-1,pump,3450,418.50
MX-2,pump,5200,96.00
MX-3,pump,4100,664.00
BV-1,valve,210,12.40
GV-1,valve,2100,48.00
"""
QUESTION = "What is the cheapest pump?"


PASSWORDS = "# Passwords\n\nA password for the console has at least 14 characters.\n"
library = library_of({"parts.csv": PARTS, "passwords.md": PASSWORDS})


def test_the_api_says_what_was_computed_of_which_table_and_rows(library, api):
    body = api.post("/api/v1/ask/", {"question": QUESTION}, format="json").json()
    document = Document.objects.get(source="parts.csv")
    assert body["answer"] == "Of 3 rows where category = pump, MX-2 has the lowest price: 96.00 euro [1]."
    assert body["statements"] == []
    assert body["computed"] == {
        "operation": "least",
        "values": ["MX-2"],
        "conditions": ["category = pump"],
        "table": {"document": {"id": document.pk, "title": str(document)}, "caption": str(document), "rows": 5},
        "rows": {"count": 3, "numbers": [2]},
    }
    schemas = api.get("/api/schema/?format=json").json()["components"]["schemas"]
    assert "computed" not in schemas["Answer"]["required"]
    again = api.post("/api/v1/ask/", {"question": QUESTION}, format="json").json()
    assert again["repeats"]
    assert again["computed"] == body["computed"]


@pytest.mark.parametrize("question", ["How long must a password for the console be?", "pump, price"])
def test_where_no_value_is_stated_nothing_was_computed(library, api, question):
    assert "computed" not in api.post("/api/v1/ask/", {"question": question}, format="json").json()


def test_what_was_computed_is_not_retold_by_a_model(library, api, model):
    body = api.post("/api/v1/ask/", {"question": QUESTION}, format="json").json()
    assert body["computed"]["values"] == ["MX-2"]
    assert model.requests == []
