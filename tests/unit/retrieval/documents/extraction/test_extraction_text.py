"""Markdown, plain text, reStructuredText, tables, source code: what is marked where."""

import pytest

from retrieval.documents.extraction import extract
from retrieval.text.extracted import derive_title, strip_title


def outline(extracted):
    """Level, title, and the line that the mark points to."""
    return [
        (section.level, section.title, extracted.text[section.start :].split("\n", 1)[0])
        for section in extracted.sections
    ]


def blocks(extracted):
    return [extracted.text[span.start : span.end] for span in extracted.protected]


def test_markdown_headings_stand_at_their_offsets_and_fences_hold_none():
    source = (
        "# Café *menu*\n\nText.\n\n```sh\n# not a heading\n```\n\n"
        "## `addVar` {#add}\n\n> # quoted\n\nSub\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    extracted = extract(source.encode(), "menu.md")
    assert (extracted.text, extracted.media_type) == (source, "text/markdown")
    assert outline(extracted) == [
        (1, "Café menu", "# Café *menu*"),
        (2, "addVar", "## `addVar` {#add}"),
        (2, "Sub", "Sub"),
    ]
    assert blocks(extracted) == ["```sh\n# not a heading\n```", "| a | b |\n|---|---|\n| 1 | 2 |"]
    assert extracted.title == "Café menu"


def test_front_matter_gives_the_title_and_is_no_heading():
    source = '---\ntitle: "Visiting: hours"\nlang: nl\ntags:\n  - a\nlast: one\n---\n# Heading\n\nText.\n'
    extracted = extract(source.encode(), "a.md")
    assert extracted.title == "Visiting: hours"
    assert outline(extracted) == [(1, "Heading", "# Heading")]
    assert extracted.text == source
    assert extract(b"---\ntitle: T\nowner: me\n---\nText.\n", "a.md").sections == []


@pytest.mark.parametrize("mark", [">", ">-", "|", "|+"])
def test_a_title_on_the_lines_below_its_key_is_the_title(mark):
    source = f"---\ntitle: {mark}\n  Opening hours\n  of the pool\nlang: en\n---\n# Heading\n"
    assert extract(source.encode(), "a.md").title == "Opening hours of the pool"


def test_line_ends_and_control_characters_are_gone_before_offsets_are_counted():
    extracted = extract("# A\r\n\r\nx\x00y\u200bz\r\r## Cafe\u0301\u2028end".encode(), "a.md")
    assert extracted.text == "# A\n\nxyz\n\n## Caf\u00e9\nend"
    assert [section.start for section in extracted.sections] == [0, 10]


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("`foo_bar()` and *x*", "foo_bar() and x"),
        (r".initial(self, \*args, **kwargs)", ".initial(self, *args, **kwargs)"),
        ("[Link](http://x/y) __b__ snake_case_name", "Link b snake_case_name"),
        (":class:`~django.db.Model` use", "django.db.Model use"),
        ("A <a name='x'></a> B ##", "A B"),
    ],
)
def test_titles_lose_markup_only(source, title):
    assert strip_title(source) == title


@pytest.mark.parametrize(
    ("name", "title"),
    [("05-debug-panel.html", "Debug panel"), ("README.md", "README"), ("2024.txt", "2024"), ("a_b.txt", "A b")],
)
def test_a_files_name_becomes_a_title(name, title):
    assert derive_title(name) == title


RST = """.. _top:

=====
Title
=====

Intro::

    Not a heading
    =============

.. code-block:: python

    x = 1

    y = 2

Not code.

.. _below:

Second
======

Sub ``lit``
-----------

===== =====
A     B
===== =====
1     2
===== =====

After.
"""


def test_restructuredtext_is_read_as_markdown():
    extracted = extract(RST.encode(), "a.txt")
    assert extracted.media_type == "text/x-rst"
    assert [(section.level, section.title) for section in extracted.sections] == [
        (1, "Title"),
        (2, "Second"),
        (3, "Sub lit"),
    ]
    assert blocks(extracted) == [
        "```\nNot a heading\n=============\n```",
        "```python\nx = 1\n\ny = 2\n```",
        "| A | B |\n| --- | --- |\n| 1 | 2 |",
    ]


def test_plain_text_headings_must_agree_with_each_other():
    counted = "FOLDER\n\n1. First part\n\nText here.\n\n1.1 Detail\n\nMore.\n\n2. Second part\n\nEnd.\n"
    extracted = extract(counted.encode(), "01-folder.txt")
    assert [(section.level, section.title) for section in extracted.sections] == [
        (1, "1. First part"),
        (2, "1.1 Detail"),
        (1, "2. Second part"),
    ]
    assert extracted.title == "Folder"
    assert extract(counted.removeprefix("FOLDER\n\n").encode(), "01-folder.txt").title == "Folder"
    assert extract(counted.replace("2. Second", "7. Second").encode(), "a.txt").sections == []
    assert extract(b"ONE LOUD LINE\n\nand some text.\n", "a.txt").sections == []
    assert [section.title for section in extract(b"PART A\n\ntext\n\nPART B\n\ntext\n", "a.txt").sections] == [
        "PART A",
        "PART B",
    ]


@pytest.mark.parametrize(
    ("name", "source", "rows"),
    [
        (
            "parts.csv",
            'sku;name;note\nA-1;"Pump; big";"two\nlines"\nA-2;Seal;\n',
            ["sku: A-1; name: Pump; big; note: two lines", "sku: A-2; name: Seal"],
        ),
        # Columns of a table without a header are counted; tabs separate even if there are more commas.
        ("n.csv", "1,2.5\n3,4.5\n", ["column 1: 1; column 2: 2.5", "column 1: 3; column 2: 4.5"]),
        ("t.tsv", "a\tb\nx, y, z\tw, v, u\n", ["a: x, y, z; b: w, v, u"]),
    ],
)
def test_each_row_of_a_table_names_its_columns(name, source, rows):
    extracted = extract(source.encode(), name)
    assert blocks(extracted) == rows
    assert extracted.text == "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        (
            "a.py",
            'import x\n\n@deco\nclass A:\n    """Doc\n    def no(): ...\n    """\n\n'
            "    async def b(self):\n        def c(): ...\n\ndef d(): ...\n",
            [(1, "A", "@deco"), (2, "b", "    async def b(self):"), (1, "d", "def d(): ...")],
        ),
        (
            "a.ts",
            "export class A {}\nexport const f = async (x) => {\n}\nfunction g() {}\n",
            [(1, "A", "export class A {}"), (1, "f", "export const f = async (x) => {"), (1, "g", "function g() {}")],
        ),
        ("a.go", "package x\n\n// Run runs.\nfunc (s *S) Run() {\n}\n", [(1, "Run", "// Run runs.")]),
        (
            "A.java",
            "public class A {\n    public static int add(int a) {\n        return add(1);\n    }\n}\n",
            [(1, "A", "public class A {"), (2, "add", "    public static int add(int a) {")],
        ),
        ("a.c", "int main(void) {\n  return f(1);\n}\n", [(1, "main", "int main(void) {")]),
        ("a.sql", "CREATE TABLE IF NOT EXISTS t (a int);\n", [(1, "t", "CREATE TABLE IF NOT EXISTS t (a int);")]),
        ("a.toml", "[tool.x]\na = 1\n", [(1, "tool.x", "[tool.x]")]),
        ("a.sh", "run() {\n  echo\n}\n", [(1, "run", "run() {")]),
    ],
)
def test_source_code_has_a_section_for_each_definition(name, source, expected):
    extracted = extract(source.encode(), name)
    assert outline(extracted) == expected
    assert (extracted.text, extracted.title) == (source, name)


def test_json_lines_are_rows_of_their_fields_and_json_is_text_as_it_is():
    records = extract(
        b'{"q": "Who\\n\\u0000 calls?", "n": 1.5, "of": null}\n\n{"q": "", "tags": ["a", true]}\n{}\n', "x.jsonl"
    )
    assert blocks(records) == ["q: Who calls?; n: 1.5", 'tags: ["a", true]']
    assert records.holds_records
    assert [(grid.header, len(grid.rows)) for grid in records.tables] == [(("q", "n", "of", "tags"), 2)]
    for kept in ('{"a": 1}\n[2]\n', '{"a": 1}\nno\n', "1\n2\n"):
        assert blocks(extract(kept.encode(), "x.jsonl")) == kept.splitlines()
    assert extract(b'{"a": [1, 2]}', "x.json").text == '{"a": [1, 2]}'


@pytest.mark.parametrize(
    ("name", "source", "text"),
    [
        ("a.json", r'{"city": "caf\u00e9 \u4f60\ud83d\ude00"}', '{"city": "café 你😀"}'),
        ("a.json", r'{"a": "\u0022 \n \\u00e9 C:\\new"}', r'{"a": "\u0022 \n \\u00e9 C:\\new"}'),
        ("a.yaml", r'city: "caf\xE9 \u20AC5"', 'city: "café €5"'),
        ("a.properties", r"city=Caf\u00e9", "city=Café"),
        ("a.py", r'city = "caf\u00e9"', r'city = "caf\u00e9"'),
        ("a.json", r'{"a": "\u12"}', r'{"a": "\u12"}'),
    ],
)
def test_letters_that_data_files_write_as_codes_are_letters(name, source, text):
    assert extract(source.encode(), name).text == text
