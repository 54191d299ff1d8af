import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retrieval.documents.extraction import ExtractedText, Page, Section, Span, extract
from retrieval.exceptions import DocumentRejected
from retrieval.text.chunking import (
    MAX_CONTEXT_CHARS,
    SPECIAL_TOKENS,
    build_embedding_text,
    build_heading_context,
    hash_content,
    split_into_chunks,
)


def count_words(texts):
    """Count words and marks, long words by their length: additive, as word pieces are."""
    return [sum((len(word) + 7) // 8 for word in re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def count_pairs(texts):
    """Count non-additively: two texts joined cost more than both alone."""
    return [count + count // 20 for count in count_words(texts)]


def markdown(source):
    return extract(source.encode(), "a.md")


def path_at(extracted, offset):
    """Return the heading path at an offset, computed again from the marks."""
    path = []
    for section in extracted.sections:
        if section.start > offset:
            break
        path = [part for part in path if part[0] < section.level] + [(section.level, section.title)]
    return tuple(title for _, title in path)


def check(extracted, chunks, budget, count=count_words):
    """Check all invariants, for any text and any budget."""
    text = extracted.text
    covered = [False] * len(text)
    for passage in chunks:
        assert passage.text == text[passage.start : passage.end]
        assert passage.text.strip()
        assert passage.text == passage.text.rstrip()
        covered[passage.start : passage.end] = [True] * (passage.end - passage.start)
        room = budget - SPECIAL_TOKENS
        context = build_heading_context(extracted.title, passage.heading_path)
        body, around = count([passage.text])[0], count([context])[0]
        assert body + around <= room or body <= max(1, room // 4) or len(passage.text) == 1
    assert all(covered[at] or char.isspace() for at, char in enumerate(text))
    for before, after in zip(chunks, chunks[1:], strict=False):
        assert before.start < after.start
        assert before.end < after.end


HEADINGS = st.integers(1, 4).flatmap(
    lambda level: st.text("abc ", min_size=1, max_size=12).map(lambda words: f"{'#' * level} h{words}")
)
PROSE = st.lists(
    st.sampled_from(["Alpha beta gamma.", "Delta?", "e.g. epsilon zeta eta theta.", "Dr. Iota", "日本語。文"]),
    min_size=1,
    max_size=12,
).map(" ".join)
CODE = st.lists(st.sampled_from(["x = 1", "    y = call(x)", "", "# note"]), min_size=1, max_size=15).map(
    lambda lines: "\n".join(["```", *lines, "```"])
)
TABLE = st.integers(1, 12).map(
    lambda rows: "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | value {n} |" for n in range(rows))
)
LONG = st.integers(1, 400).map(lambda size: "QUJD+/" * size)
SOURCES = st.lists(st.one_of(HEADINGS, PROSE, CODE, TABLE, LONG, st.text(max_size=40)), min_size=1, max_size=14).map(
    "\n\n".join
)


@settings(max_examples=150)
@given(source=SOURCES, budget=st.integers(12, 120), is_additive=st.booleans())
@example(
    source="Delta?\n\nDelta?\n\nDelta? Epsilon zeta eta theta iota kappa. Alpha beta gamma. Alpha beta gamma. Delta?",
    budget=15,
    is_additive=True,
)
@example(source="```\nx = call(y)\nx = call(y)\nx = call(y)\nx = call(y)\n```", budget=30, is_additive=False)
def test_any_markdown_is_covered_within_budget_under_its_headings(source, budget, is_additive):
    try:
        extracted = markdown(source)
    except DocumentRejected:
        return
    count = count_words if is_additive else count_pairs
    chunks = split_into_chunks(extracted, count, budget)
    check(extracted, chunks, budget, count)
    assert chunks == split_into_chunks(extracted, count, budget)
    for passage in chunks:
        for path in {path_at(extracted, at) for at in range(passage.start, passage.end)}:
            # Only text before the first heading, and bare headings above, may lie outside.
            outside = path[: len(passage.heading_path)] != passage.heading_path
            assert not outside or passage.heading_path[: len(path)] == path


@given(
    text=st.text("ab .\n", max_size=300),
    marks=st.lists(st.tuples(st.integers(0, 299), st.integers(1, 3)), max_size=6),
    spans=st.lists(st.tuples(st.integers(0, 299), st.integers(1, 80)), max_size=5),
    budget=st.integers(4, 40),
)
def test_marks_at_any_offsets_are_survived(text, marks, spans, budget):
    sections = tuple(
        Section(start, level, f"t{start}") for start, level in sorted(dict(marks).items()) if start < len(text)
    )
    protected = []
    for start, size in sorted(spans):
        if start + size <= len(text) and (not protected or protected[-1].end <= start):
            protected.append(Span(start, start + size))
    extracted = ExtractedText(text, "text/plain", "t", sections, (), tuple(protected))
    check(extracted, split_into_chunks(extracted, count_words, budget), budget)


SENTENCES = " ".join(f"Sentence number {n} says something of note." for n in range(40))


def test_prose_is_cut_at_sentence_ends_with_about_a_fifth_of_overlap():
    chunks = split_into_chunks(markdown(f"# T\n\n{SENTENCES}"), count_words, 80)
    assert len(chunks) > 3
    for before, after in zip(chunks, chunks[1:], strict=False):
        assert before.text.endswith(".")
        assert after.text.startswith("Sentence")
        assert 0.1 * 78 <= count_words([before.text[after.start - before.start :]])[0] <= 0.2 * 78
    assert max(sizes := count_words([passage.text for passage in chunks])) < 1.5 * min(sizes)


def test_sections_do_not_share_text():
    chunks = split_into_chunks(markdown(f"# One\n\n{SENTENCES}\n\n# Two\n\n{SENTENCES}"), count_words, 80)
    border = next(passage.start for passage in chunks if passage.heading_path == ("Two",))
    assert all(passage.end <= border for passage in chunks if passage.heading_path == ("One",))
    assert {passage.heading_path for passage in chunks} == {("One",), ("Two",)}


def test_blocks_stay_whole_where_they_fit_and_break_at_lines_where_not():
    fits = "```\n" + "\n".join(f"line_{n} = value" for n in range(12)) + "\n```"
    long = "```\n" + "\n".join(f"row_{n} = value" for n in range(60)) + "\n```"
    chunks = split_into_chunks(
        markdown(f"# T\n\n{SENTENCES[:300]}\n\n{fits}\n\n{SENTENCES[:300]}\n\n{long}\n"), count_words, 80
    )
    assert sum(fits in passage.text for passage in chunks) == 1
    parts = [passage.text for passage in chunks if "row_" in passage.text]
    assert len(parts) > 2
    for part in parts:
        assert all(re.fullmatch(r"row_\d+ = value", line) for line in part.split("\n") if line.startswith("row_"))
    assert sum(part.count("row_7 = value") for part in parts) == 1


def test_a_large_block_of_long_lines_breaks_at_no_other_place():
    lines = [" ".join(f"w{n}x{at}" for at in range(45)) for n in range(6)]
    chunks = split_into_chunks(markdown("```\n" + "\n".join(lines) + "\n```\n"), count_words, 80)
    assert all(line in lines or line == "```" for passage in chunks for line in passage.text.split("\n"))


def test_a_block_is_not_parted_from_the_line_that_introduces_it():
    filler = " ".join(["Words fill this up here."] * 9)
    source = f"# T\n\n{filler}\n\nRun it like so:\n\n```\nmake run all of it now please\n```\n\n{filler}\n"
    (holder,) = [
        passage for passage in split_into_chunks(markdown(source), count_words, 70) if "make run" in passage.text
    ]
    assert "Run it like so:" in holder.text


def test_small_siblings_are_joined_under_their_parent_and_large_ones_not():
    small = markdown("# Top\n\nIntro words.\n\n## A\n\nShort.\n\n## B\n\nShort too.\n")
    (joined,) = split_into_chunks(small, count_words, 200)
    assert joined.heading_path == ("Top",)
    large = markdown(f"# Top\n\n## A\n\n{SENTENCES[:400]}\n\n## B\n\n{SENTENCES[:400]}\n")
    first, second = split_into_chunks(large, count_words, 200)
    assert (first.heading_path, second.heading_path) == (("Top", "A"), ("Top", "B"))
    assert first.text.startswith("# Top\n\n## A")
    top = "".join(f"# H{n}\n\n{SENTENCES[:200]}\n\n" for n in range(3))
    assert [passage.heading_path for passage in split_into_chunks(markdown(top), count_words, 256)] == [
        ("H0",),
        ("H1",),
        ("H2",),
    ]


def test_a_heading_without_a_text_goes_with_what_follows():
    """At the end of the passage before, it would take away that passage's own headings."""
    source = (
        f"# Leader\n\n## Term\n\nOne year.\n\n## Vote\n\nBy all.\n\n# Committee\n\n## Powers\n\n{SENTENCES[:200]}\n"
    )
    first, second = split_into_chunks(markdown(source), count_words, 200)
    assert (first.heading_path, first.text[-7:]) == (("Leader",), "By all.")
    assert (second.heading_path, second.text[:11]) == (("Committee", "Powers"), "# Committee")


def test_an_unbroken_line_is_cut_hard():
    extracted = ExtractedText("x" * 5_000_00, "text/plain", "t")
    chunks = split_into_chunks(extracted, lambda texts: [1] * len(texts), 256)
    assert max(len(passage.text) for passage in chunks) <= 16 * 256
    assert "".join(passage.text for passage in chunks) == extracted.text


def test_the_page_is_the_one_the_passage_starts_on():
    text = "One two three.\n\nFour five six.\n"
    extracted = ExtractedText(text, "application/pdf", "t", (), (Page(1, 0, 14), Page(2, 16, 30)))
    assert [passage.page for passage in split_into_chunks(extracted, count_words, 9)] == [1, 2]


def test_nothing_to_cut_and_nothing_to_cut_with():
    assert split_into_chunks(ExtractedText(" \n ", "text/plain", "t"), count_words, 50) == []
    with pytest.raises(ValueError, match="budget must exceed"):
        split_into_chunks(ExtractedText("x", "text/plain", "t"), count_words, SPECIAL_TOKENS)


def test_the_context_names_title_and_headings_once_within_its_length():
    assert build_heading_context("Guide", ["guide", "Setup"]) == "Guide > Setup"
    assert build_heading_context("", []) == ""
    assert build_embedding_text("Guide", ["Setup"], "x") == "Guide > Setup\nx"
    assert build_embedding_text("", [], "x") == "x"
    assert build_heading_context("Guide", ["m" * 90, "n" * 90, "Last one"]) == f"Guide > {'n' * 90} > Last one"
    assert len(build_heading_context("T" * 500, ["h" * 500])) <= MAX_CONTEXT_CHARS


def test_the_hash_ignores_white_space_and_sees_words_and_headings():
    assert hash_content("a  b\n", ["H"]) == hash_content("a b", ["H"])
    assert (
        len(
            {hash_content("a b", ["H"]), hash_content("ab", ["H"]), hash_content("a b", ["G"]), hash_content("a b", [])}
        )
        == 4
    )


@pytest.mark.parametrize(
    ("header", "row", "passages"),
    [
        ("sku,name", "P-{n},circulation pump number {n} for cold and hot drinking water of bronze and of steel", 9),
        # A vector of three short numbers is near to everything.
        ("n,square", "{n},{n}", 1),
    ],
)
def test_rows_of_a_catalogue_are_passages_of_their_own(header, row, passages):
    rows = "\n".join(row.format(n=n) for n in range(9))
    extracted = extract(f"{header}\n{rows}\n".encode(), "catalogue.csv")
    chunks = split_into_chunks(extracted, count_words, 256)
    assert len(chunks) == passages
    assert "\n".join(passage.text for passage in chunks) == extracted.text.strip()
