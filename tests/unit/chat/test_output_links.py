"""Links of a model's answer: only addresses that are in a source stay links, however they are written and cut."""

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chat.answering.checking.addresses import find_addresses, find_known_addresses, normalize_address
from chat.answering.checking.links import find_link_edits, find_link_safe_boundary, find_tags
from tests.support.contexts import source

SOURCE = (
    "Order at https://good.example/parts?id=7 or mail info@good.example. See www.good.example/help and "
    'https://wiki.example/Pump_(machine), or <a href="https://good.example/html">this</a>.'
)
KNOWN = find_known_addresses([source(SOURCE)])


TAGS = find_tags([SOURCE])


def shown(text, cut=0):
    """Return the text as it is shown when it comes in pieces of this many characters."""
    written, upto, pieces = "", 0, []

    def show(end):
        nonlocal upto
        for edit in find_link_edits(written, upto, end, KNOWN, TAGS):
            pieces.extend([written[upto : edit.start], edit.text])
            upto = edit.end
        pieces.append(written[upto:end])
        upto = max(upto, end)

    for at in range(0, len(text), cut or len(text) or 1):
        written += text[at : at + (cut or len(text))]
        show(find_link_safe_boundary(written, upto, len(written)))
    show(len(written))
    return "".join(pieces)


@pytest.mark.parametrize(
    "text",
    [
        "[order](https://good.example/parts?id=7) now",
        "<https://good.example/parts?id=7>",
        "https://good.example/parts?id=7.",
        "HTTPS://GOOD.example/parts?id=7",
        "(https://wiki.example/Pump_(machine))",
        "[wiki](https://wiki.example/Pump_(machine))",
        "info@good.example, mailto:info@good.example",
        "www.good.example/help",
        '<a href="https://good.example/html">this</a>',
        "It takes 3.5 bar: see [1](a) and f[0](x), e.g. [2]; a < b && c &amp; d, List<String>, 50 & more, x@ y",
        '```python\nrow["a"]: int = 1  # note\nfor (i = 0; i<n; i++) {}\n```',
        "| a | b |\n|:--|--:|\n| 1 | 2 |",
        "Ratio 3:4, C:\\Temp\\x, 10:30, std::vector, and/or, //comment",
        "[Note]: close the valve\n[Opening]: 10:30 to 12\n\n[a]: /help\n[b](10:30) f[0]( x )",
        "Write &colon; for a colon, &#58; too; R&amp;D, &lt;a&gt;",
        '<button class="x">Stop</button> <td > <input type="text"> vector<std::string>',
        "https://good.example/parts?id=7[1] and https://good.example/html[1, 2].",
    ],
)
def test_what_stands_in_a_source_and_what_is_no_link_stays(text):
    for cut in (0, 1, 3):
        assert shown(text, cut) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[here](https://evil.example/?d=secret)", "[here] (https: //evil[.]example/?d=secret)"),
        ("![x](https://evil.example/p.png)", "![x] (https: //evil[.]example/p.png)"),
        ("<https://evil.example>", "< https: //evil[.]example>"),
        ("see https://evil.example/a.", "see https: //evil[.]example/a."),
        ("[r]: https://evil.example\n\n[r]", "[r] : https: //evil[.]example\n\n[r]"),
        ("www.evil.example/x", "www[.]evil.example/x"),
        ("ask me@evil.example.", "ask me[@]evil.example."),
        ("mailto:me@evil.example", "mailto: me[@]evil.example"),
        ("[x](javascript:alert(1))", "[x] (javascript: alert(1))"),
        ("[x](//evil.example)", "[x] (//evil.example)"),
        ("[x](\\\\evil.example)", "[x] (\\\\evil.example)"),
        ("https&#58;//evil.example", "https& #58;//evil.example"),
        ("https\\://evil.example", "https\\: //evil[.]example"),
        ("[x](https:/evil.example)", "[x] (https:/evil.example)"),
        ("<made-up:evil>", "< made-up:evil>"),
        ('<img src="//evil.example">', '< img src="//evil.example">'),
        # Known addresses with something added, and look-alikes.
        ("https://good.example/parts?id=7&d=secret", "https: //good[.]example/parts?id=7&d=secret"),
        ("https://good.example/parts?id=7#secret", "https: //good[.]example/parts?id=7#secret"),
        ("https://good.example/parts/?id=7", "https: //good[.]example/parts/?id=7"),
        ("https://good.example/Parts?id=7", "https: //good[.]example/Parts?id=7"),
        ("https://good.example/parts?id=%37", "https: //good[.]example/parts?id=%37"),
        ("https://good.example@evil.example/", "https: //good[.]example[@]evil[.]example/"),
        ("https://good.example:8443/parts?id=7", "https: //good[.]example:8443/parts?id=7"),
        ("https://g\u043e\u043ed.example/parts?id=7", "https: //g\u043e\u043ed[.]example/parts?id=7"),
        ("https://good\u3002example/parts?id=7", "https: //good\u3002example/parts?id=7"),
        ("https://good.example.evil.example/", "https: //good[.]example[.]evil[.]example/"),
        ("www.(://)", "www[.] (: //)"),
        # Schemes without an address, and targets in another line than their bracket.
        ("[a](x:)", "[a] (x:)"),
        ("[a](javascript:)", "[a] (javascript: )"),
        ("[a](\njavascript:x)", "[a] (\njavascript: x)"),
        ("<mail@server>", "< mail@server>"),
        ("[a](\nhttps\n://x)", "[a](\nhttps\n: //x)"),
        # Without a scheme, an address is one of this site.
        ("[a](:b)", "[a](:b)"),
    ],
)
def test_what_stands_in_no_source_is_broken(text, expected):
    for cut in (0, 1, 2, 5):
        assert shown(text, cut) == expected
    assert shown(shown(text)) == shown(text)


WORDS = (
    "https :// : / // \\ & &#58; &colon; evil.example good.example/parts?id=7 https://good.example/parts?id=7 [ ] ( )"
    " < > https://evil.example ! [a] [a]: ]( ` ``` * _ mailto: @ www. a 1 . javascript: <a <img href= \" '"
)
# Browsers see a scheme only in an address that begins like this (URL standard, section 4.4).
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
PARTS = st.sampled_from([*WORDS.split(), "\n", "\n\n", " ", "\t"])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PARTS, max_size=14).map("".join), st.integers(1, 7))
def test_no_reader_of_markdown_finds_another_link(text, cut):
    whole = shown(text)
    assert shown(text, cut) == whole
    for html in (False, True):
        for token in MarkdownIt("commonmark", {"html": html}).parse(whole):
            for child in token.children or []:
                if child.type in ("link_open", "image"):
                    href = str(child.attrs.get("href", child.attrs.get("src", "")))
                    leads_away = SCHEME.match(href) or href.startswith(("//", "/\\", "%5C"))
                    assert normalize_address(href) in KNOWN or not leads_away


def test_addresses_are_compared_as_browsers_send_them():
    assert normalize_address("HTTP://A.example:80") == normalize_address("http://a.example/")
    assert normalize_address("https://a.example/\u00e9?q=%c3%a9") == "https://a.example/%C3%A9?q=%C3%A9"
    for never in ("ftp://a.example", "https://u:p@a.example/", "https://a.example\\@b", "//a.example", "https://", "x"):
        assert normalize_address(never) == ""
    assert find_addresses("Mail a.b@c.example; see (https://d.example/x), www.e.example!") == [
        "https://d.example/x",
        "https://www.e.example",
        "mailto:a.b@c.example",
    ]


@pytest.mark.parametrize("text", ["[", "](", "<a ", "&#", "www.", "https://", "a@b.", "](:", "<a x>", "[a]:", "&#1;"])
def test_the_work_is_proportional(text):
    def seconds(count):
        begun = time.process_time()
        shown(text * (count // len(text)), cut=100)
        return time.process_time() - begun

    assert seconds(40_000) < 100 * max(seconds(4_000), 0.01)
    assert seconds(40_000) < 5
