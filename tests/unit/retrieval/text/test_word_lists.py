"""The words of a language are in one file, which has the same keys as that of any other language."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from retrieval.tables.lexicon import GrammarWord
from retrieval.text import word_lists
from retrieval.text.word_lists import (
    COMPLETE,
    FOLDER,
    SHARED,
    ImproperWordList,
    find_unknown_keys,
    read_word_list_files,
)

ROOT = Path(__file__).parents[4]
APPS = ("chat", "core", "evaluation", "ragsite", "retrieval")
# These are English words or names too.
NOT_ONLY_DUTCH = {"met", "dat"}
# Texts of the demonstration's Dutch documents.
DEMONSTRATION = {"ragsite/processes/first_run.py"}
# Phrases of questions about tables are read by the names of this enumeration.
READ_BY_LOOP = {word.name.lower() for word in GrammarWord}


def keys(sections, path=""):
    for name, value in sections.items():
        yield f"{path}{name}"
        if isinstance(value, dict):
            yield from keys(value, f"{path}{name}.")


def sources():
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path, path.read_text()


def test_every_file_is_read():
    assert set(read_word_list_files()) == {path.stem for path in FOLDER.iterdir()}
    assert {"en", "nl", SHARED} <= set(read_word_list_files())


# Other files only have what recognises a language, and the patterns of injection.
@pytest.mark.parametrize("code", sorted(set(read_word_list_files()) - {SHARED}))
def test_a_file_has_all_keys_or_is_only_recognised(code):
    sections = read_word_list_files()[code]
    if set(sections) <= {"language", "injection", "documents"}:
        assert set(keys(sections)) <= set(keys(read_word_list_files()[COMPLETE]))
    else:
        assert set(keys(sections)) == set(keys(read_word_list_files()[COMPLETE]))


def test_a_key_that_english_lacks_is_an_error(tmp_path, monkeypatch):
    for path in FOLDER.glob("*.toml"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "nl.toml").write_text((FOLDER / "nl.toml").read_text() + '\nmisspelt = "x"\n')
    monkeypatch.setattr(word_lists, "FOLDER", tmp_path)
    with pytest.raises(ImproperWordList, match=r"nl\.toml has keys that en\.toml lacks: .*misspelt"):
        read_word_list_files.__wrapped__()


def test_an_unknown_set_is_an_error():
    with pytest.raises(ImproperWordList, match="questions has no set named misspelt"):
        word_lists.fill_in("<misspelt>", "questions")


def test_a_pattern_has_the_words_of_its_own_language_or_of_all():
    assert word_lists.fill_in("<why>", "questions") == "(?:why|waarom)"
    assert word_lists.fill_in("<why>", "questions", "nl") == "(?:waarom)"
    assert word_lists.fill_in("(?P<why>x)", "questions") == "(?P<why>x)"


def test_unknown_keys_are_found_at_any_depth():
    assert list(find_unknown_keys({"a": {"b": 1, "c": 2}, "d": 1}, {"a": {"b": 0}})) == ["a.c", "d"]


@pytest.mark.parametrize("code", [COMPLETE, SHARED])
def test_every_key_is_used(code):
    text = "\n".join(text for _path, text in sources())
    patterns = "\n".join(path.read_text() for path in FOLDER.glob("*.toml"))
    unused = []
    for path in keys(read_word_list_files()[code]):
        name = path.rpartition(".")[2]
        # Of a concept, only the words count, not its name.
        is_concept = path.startswith("tables.concepts.") and path.count(".") == 2
        is_named = any(each in text for each in (f'"{name}"', f"'{name}'", f"<{name}>", f'"{name}|'))
        if not (is_concept or is_named or f"<{name}>" in patterns or name in READ_BY_LOOP):
            unused.append(path)
    assert not unused


def test_no_module_has_dutch_words():
    dutch = tomllib.loads((FOLDER / "nl.toml").read_text())["language"]["common"].split()
    common = {word for word in dutch if len(word) > 2} - NOT_ONLY_DUTCH
    found = {
        f"{path.relative_to(ROOT)}:{node.lineno}: {' '.join(sorted(words))}"
        for path, text in sources()
        if str(path.relative_to(ROOT)) not in DEMONSTRATION
        for node in _list_strings(ast.parse(text))
        if (words := common.intersection(re.findall(r"[^\W\d_]+", re.sub(r"\\[a-zA-Z]", " ", node.value.lower()))))
    }
    assert not found, "words of a language belong into retrieval/text/languages/"


def _list_strings(tree):
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node
