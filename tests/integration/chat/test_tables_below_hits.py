"""Tables that a search found, but not among its first passages."""

import pytest

from tests.integration.chat.test_computed_answers import PARTS
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

# Each rule is a passage of its own.
RULES = "# Rules\n\n" + "\n\n".join(
    f"## Rule {number}: what is the cheapest product, and how many products are under 50 euros?\n\n"
    + f"Rule {number} says how a customer returns the cheapest product, and how many products under 50 euros. " * 12
    for number in range(12)
)
library = library_of({"rules.md": RULES, "parts.csv": PARTS})


QUESTION = "How many products are under 50 euros?"


def find_titles(api, question):
    found = api.post("/api/v1/search/", {"query": question}, format="json").json()
    return {hit["document"]["title"] for hit in found["results"]}


@pytest.mark.parametrize(("question", "values"), [("What is the cheapest product?", ["BV-1"]), (QUESTION, ["2"])])
def test_a_table_below_the_hits_is_computed(library, api, question, values):
    assert find_titles(api, question) == {"Rules"}
    body = api.post("/api/v1/ask/", {"question": question}, format="json").json()
    assert body["computed"]["values"] == values
    assert [citation["document"]["title"] for citation in body["citations"]] == ["Parts"]


def test_of_two_tables_below_the_hits_neither_is_computed(library, ingest, api):
    ingest(library, "former.csv", PARTS.replace("-", "-0"))
    assert find_titles(api, QUESTION) == {"Rules"}
    assert "computed" not in api.post("/api/v1/ask/", {"question": QUESTION}, format="json").json()
