"""The page of a table, where a reader filters and sorts its rows."""

import re
from html import unescape

import pytest
from django.urls import reverse

from retrieval.viewer import table_page

pytestmark = pytest.mark.django_db

PARTS = """sku,category,weight_g,sold
MX-1,pump,3450,yes
MX-2,pump,"5,200",no
MX-3,pump,4100,yes
BV-1,valve,210,yes
GV-1,<b>valve</b>,2100,no
"""


@pytest.fixture
def document(collection, ingest):
    return ingest(collection, "parts.csv", PARTS)


def page(client, document, **query):
    response = client.get(reverse("retrieval:table", args=[document.pk, 0]), query)
    assert response.status_code == 200
    return response.content.decode()


def skus(html):
    return re.findall(r"<tr><td>([A-Z0-9-]+)</td>", html)


def test_it_filters_and_sorts_by_what_is_in_the_address(client, document):
    html = page(client, document, c1="pump", c2=">4000", sort="-2")
    assert skus(html) == ["MX-2", "MX-3"]
    assert "2 of 5 rows" in html
    assert 'name="c1" value="pump"' in html
    assert re.search(r'aria-sort="descending"><a href="\?c1=pump&amp;c2=%3E4000&amp;sort=2">weight \(g\)</a>', html)
    assert skus(page(client, document, sort="2")) == ["BV-1", "GV-1", "MX-1", "MX-3", "MX-2"]
    assert skus(page(client, document, c3="no")) == ["MX-2", "GV-1"]


def test_what_is_no_filter_is_named_and_what_no_row_fits_is_said(client, document):
    html = page(client, document, c2="heavy", c0="MX", sort="99", page="x")
    assert "This filter cannot be read: weight (g)." in html
    assert skus(html) == ["MX-1", "MX-2", "MX-3"]
    assert "No row fits these filters." in page(client, document, c0="ZZ\0")


def test_cells_are_shown_as_text(client, document):
    html = page(client, document, c1='"><b>')
    assert "<b>" not in html
    assert "<b>valve</b>" in unescape(page(client, document))


def test_long_tables_have_pages(client, document, monkeypatch):
    monkeypatch.setattr(table_page, "ROWS_A_PAGE", 2)
    html = page(client, document, c1="pump", page="2")
    assert skus(html) == ["MX-3"]
    assert "Rows 3 to 3 of 3" in html
    assert 'href="?c1=pump&amp;page=1"' in html
    assert skus(page(client, document, page="99")) == ["GV-1"]


def test_only_readers_of_the_document_see_it(client, collection, document):
    address = reverse("retrieval:table", args=[document.pk, 0])
    assert client.get(address.replace("tables/0", "tables/7")).status_code == 404
    collection.visibility = "staff"
    collection.save()
    assert client.get(address).status_code == 404
