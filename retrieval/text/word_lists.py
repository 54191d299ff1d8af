r"""Read the word lists of each language from the TOML files in `languages/`.

A file has these sections; a language can lack any of them:

- ``language``: common words, by which a text's language is recognised;
- ``questions``: words that begin questions and greetings, or point at earlier questions;
- ``tables``: words of questions about tables, of column names and of cells;
- ``classification``: for each rule, patterns that classify questions;
- ``injection``: for each rule, patterns of questions that instruct the site;
- ``instructions``: for each rule, patterns of sentences in documents that instruct a language model;
- ``answers``: words with which a model mentions its sources, refuses to answer or introduces a citation;
- ``documents``: content words, and words of headings, lists and pages.

Only keys in the English file are allowed. Words are separated by blanks, phrases and alternatives by ``|``. In a
pattern, ``<name>`` means the alternatives under that name in ``sets``.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("languages")
# SHARED is the file for all languages. COMPLETE is the file with all keys that other files may have.
SHARED, COMPLETE = "any", "en"
_SET = re.compile(r"(?<!\?P)<([a-z_]+)>")


class ImproperWordList(ValueError):
    """An error: a language's file has a key that no code reads, or a pattern names a set of words that is missing."""


@functools.cache
def read_word_list_files() -> dict[str, dict[str, Any]]:
    """Return the content of each file by its name, in alphabetical order. Raises: ImproperWordList."""
    files = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))}
    for code, sections in files.items():
        if code != SHARED and (unknown := sorted(find_unknown_keys(sections, files[COMPLETE]))):
            raise ImproperWordList(f"{code}.toml has keys that {COMPLETE}.toml lacks: {', '.join(unknown)}")
    return files


def find_unknown_keys(sections: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    for name, value in sections.items():
        if name not in known:
            yield name
        elif isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in find_unknown_keys(value, known[name]))


@functools.cache
def read_sections(name: str) -> dict[str, Any]:
    """Return a section of all files: a mapping from the name of each file that has it, in alphabetical order."""
    return {code: sections[name] for code, sections in read_word_list_files().items() if name in sections}


def join_lists(sections: dict[str, Any], name: str) -> str:
    return " ".join(section.get(name, "") for section in sections.values())


def read_words(section: str, name: str) -> frozenset[str]:
    """Return the words that the list ``name`` of a section has in all languages."""
    return frozenset(join_lists(read_sections(section), name).split())


def read_phrases(section: str, name: str) -> tuple[str, ...]:
    """Return the phrases of the list ``name`` in a section, of all languages."""
    lists = (words.get(name, "") for words in read_sections(section).values())
    return tuple(phrase for phrases in lists if phrases for phrase in phrases.split("|"))


def read_patterns(section: str, rule: str) -> list[str]:
    return [
        fill_in(pattern, section, code)
        for code, words in read_sections(section).items()
        for pattern in words.get(rule, [])
    ]


def fill_in(pattern: str, section: str, code: str = SHARED) -> str:
    """Replace each ``<name>`` in a pattern by the alternatives under this name in ``sets``.

    Raises: ImproperWordList if no language has the name.
    """
    return _SET.sub(lambda name: f"(?:{_join_alternatives(section, name[1], code)})", pattern)


def _join_alternatives(section: str, name: str, code: str) -> str:
    sets = {language: words.get("sets", {}) for language, words in read_sections(section).items()}
    own = sets.get(code, {})
    found = [own[name]] if name in own else [words[name] for words in sets.values() if name in words]
    if not found:
        raise ImproperWordList(f"{section} has no set named {name}")
    return "|".join(filter(None, found))
