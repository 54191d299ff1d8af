"""Read the word lists of each language from `languages/`, which has a TOML file for each language. PURE.

A file has these sections; a language can lack any of them:

- ``language``: common words, by which a text's language is recognised;
- ``tables``: the words of questions about tables, and words of column names;
- ``classification``: the patterns of the classes of questions, by rule.
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("languages")


@functools.cache
def read_sections(name: str) -> dict[str, Any]:
    """Return the section ``name`` of all languages that have it, by two-letter code in alphabetical order."""
    files = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))}
    return {code: sections[name] for code, sections in files.items() if name in sections}


def join_lists(sections: dict[str, Any], name: str) -> str:
    return " ".join(section.get(name, "") for section in sections.values())
