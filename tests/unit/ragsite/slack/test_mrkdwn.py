"""Markdown of answers as Slack shows it, and messages of Slack as questions."""

import pytest

from ragsite.slack.messages import SECTION_CHARACTERS, convert_to_mrkdwn, split_sections, write_link
from ragsite.slack.receiving import convert_mrkdwn_to_text


@pytest.mark.parametrize(
    ("markdown", "mrkdwn"),
    [
        ("# Weight\n\nIt is **heavy**, *very*, ~~light~~.", "*Weight*\nIt is *heavy*, _very_, ~light~."),
        ("- one\n- two\n  - three\n\nAfter.", "• one\n• two\n    • three\n\nAfter."),
        ("3. three\n4. four", "3. three\n4. four"),
        ("1. one\n\n   more\n2. two", "1. one\nmore\n2. two"),
        ("> quoted\n> twice\n\nAfter.", "> quoted\n> twice\n\nAfter."),
        ("Call `f(a < b)`.", "Call `f(a &lt; b)`."),
        ("```python\nif a < b: pass\n```", "```\nif a &lt; b: pass\n```"),
        ("| Part | Grams |\n|---|---|\n| MX & more | 3450 |", "```\nPart | Grams\nMX &amp; more | 3450\n```"),
        ("<!channel> <@U1> & co", "&lt;!channel&gt; &lt;@U1&gt; &amp; co"),
        ("a\nb", "a\nb"),
    ],
)
def test_markdown_becomes_mrkdwn(markdown, mrkdwn):
    assert convert_to_mrkdwn(markdown, {}) == mrkdwn


def test_only_addresses_of_sources_become_links_and_known_markers_become_citations():
    text = "See [the shop](https://shop.example/a|b) and [evil](https://evil.example/) [1] [2]."
    told = convert_to_mrkdwn(text, {1: "https://ask.example.org/documents/1/"}, ["https://shop.example/a|b"])
    assert "<https://shop.example/a%7Cb|the shop>" in told
    assert "<https://evil" not in told
    assert "<https://ask.example.org/documents/1/|[1]> [2]" in told
    assert write_link("https://x.example/?a=1&b=2", "a > b") == "<https://x.example/?a=1&amp;b=2|a &gt; b>"


@pytest.mark.parametrize("text", ["word " * 3000, "x" * 7000, "line\n" * 3000, "<https://x.example/|a link> " * 400])
def test_long_answers_are_split_and_nothing_is_lost(text):
    parts = split_sections(text)
    assert all(len(part) <= SECTION_CHARACTERS for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part.count("<") == part.count(">") for part in parts)


def test_code_that_is_split_stays_code():
    parts = split_sections("```\n" + "code line\n" * 800 + "```\nAfter.")
    assert len(parts) > 2
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert parts[-1].endswith("```\nAfter.")


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("<@U0BOT> How heavy is it?", "How heavy is it?"),
        ("<@U0BOT|ragsite> a &lt; b &amp; c", "a < b & c"),
        ("See <https://x.example/|x.example> or <https://y.example/>", "See x.example or https://y.example/"),
        ("<#C1|general> ok", "general ok"),
        ("<@U0BOT>", ""),
    ],
)
def test_a_message_is_read_as_words(message, question):
    assert convert_mrkdwn_to_text(message) == question
