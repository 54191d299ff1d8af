from __future__ import annotations

import time

from retrieval.ingest.extraction import extract
from retrieval.text.blocks.procedures import Procedure, find_procedures
from retrieval.text.blocks.rows import from_rows, procedures_from_rows, rows_touching


def procedures(source: str, filename: str = "a.md") -> tuple[str, list[Procedure]]:
    extracted = extract(source.encode(), filename)
    sections = [(section.start, section.level, section.title) for section in extracted.sections]
    return extracted.text, find_procedures(extracted.text, sections)


def test_numbered_sections_are_the_steps_of_a_procedure() -> None:
    text, (found,) = procedures(
        "# Going live\n\n## Needed\n\nA key.\n\n## 1. Clone\n\nSo.\n\n### On a Mac\n\nx\n\n## 2. Merge\n\ny\n\n"
        "## 3. Wait\n\nz\n\n## Help\n\nAsk.\n"
    )
    assert text[found.start : found.end].startswith("## 1. Clone")
    assert text[found.start : found.end].endswith("## 3. Wait\n\nz")
    assert [text[start:end] for start, end in found.steps] == ["## 1. Clone", "## 2. Merge", "## 3. Wait"]
    assert found.heading_start == text.index("## Needed")


def test_rows_keep_procedures_beside_blocks() -> None:
    _, (found,) = procedures("# A\n\n## 1. a\n\nx\n\n## 2. b\n\ny\n\n## 3. c\n\nz\n")
    ((row,),) = rows_touching([found], [(found.start + 3, found.end)])
    assert procedures_from_rows([row], found.start + 3) == (found,)
    assert from_rows([row], found.start + 3) == ()


def test_steps_in_words() -> None:
    _, (found,) = procedures("# Stap 1: a\n\nx\n\n# Stap 2: b\n\ny\n\n# Stap 3: c\n\nz\n")
    assert len(found.steps) == 3
    assert found.heading_start is None


def test_what_does_not_count_from_one_is_none() -> None:
    assert procedures("# 2. a\n\nx\n\n# 3. b\n\ny\n\n# 4. c\n\nz\n")[1] == []
    assert procedures("# 1. a\n\nx\n\n# 2. b\n\ny\n")[1] == []
    assert procedures("# 1 Safety\n\nx\n\n# 2 Use\n\ny\n\n# 3 Care\n\nz\n")[1] == []
    assert procedures("# 1. a\n\n" + "word " * 3000 + "\n\n# 2. b\n\ny\n\n# 3. c\n\nz\n")[1] == []


def test_steps_below_different_headings_are_different_procedures() -> None:
    part = "\n\n### 1. a\n\nx\n\n### 2. b\n\nx\n\n### 3. c\n\nx\n"
    text, found = procedures(f"## One{part}\n## Two{part}")
    assert [text[each.heading_start : each.start].strip() for each in found if each.heading_start is not None] == [
        "## One",
        "## Two",
    ]


def test_many_sections_take_time_in_proportion() -> None:
    sections = [(at, 1, f"{at + 1}. a") for at in range(40_000)]
    begun = time.process_time()
    find_procedures("a" * 40_000, sections)
    assert time.process_time() - begun < 2
