"""Rows of a catalogue, laid out for reading; prose is left alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from chat.pages.cards import Cited
from chat.pages.rendering import Doubt, answer_html

RECORD = "sku: MX-1; name: Pump; weight_g: 3450; notes: Drinking water; seal kit SK-1 [1]"


def cited(marker: int) -> Cited:
    return Cited(
        marker=marker, href="/documents/1/", title="Catalogue", section="", page=None, page_unit="", quote="sku"
    )


def test_each_column_has_a_line_of_its_own_and_its_name_stands_out() -> None:
    html = answer_html(RECORD, [cited(1)])
    assert '<p class="record">' in html
    lines = html.split("<br />")
    assert [re.findall(r"<strong>(.*?)</strong>", line) for line in lines] == [
        ["sku"],
        ["name"],
        ["weight_g"],
        ["notes"],
    ]
    assert "Drinking water; seal kit SK-1" in lines[3]
    assert 'class="cite"' in lines[3]


def test_what_a_document_wrote_stays_text() -> None:
    html = answer_html("a: <b>1</b>; b: `x; y: 1`; c: *2*; d: [u](javascript:x); e: 5", [])
    assert "<b>" not in html
    assert "javascript" not in html or "<a" not in html
    assert "<code>x; y: 1</code>" in html


@pytest.mark.parametrize(
    "prose",
    [
        "Open: yes; parking: no.",
        "Note: the pump hums; that is normal; leave it running; call nobody.",
        "One: 1; two: 2; three: 3;\nfour: 4",
    ],
)
def test_prose_is_left_alone(prose: str) -> None:
    assert "record" not in answer_html(prose, [])


def test_a_doubtful_record_is_still_marked() -> None:
    html = answer_html(RECORD, [cited(1)], [Doubt(start=0, end=len(RECORD) - 4, reason="No.")])
    assert "unsupported" in html
    assert html.count("<mark") == html.count("</mark>")


def test_a_quoted_record_is_shown_as_cells() -> None:
    quote = "Article: MX-1; Price: € 12.50; Note: a; b; Since: 2026-01-03\nOpen: yes; parking: no"
    assert replace(cited(1), quote=quote).preview == (
        "Article MX-1 · Price € 12.50 · Note a; b · Since 2026-01-03 Open: yes; parking: no"
    )
