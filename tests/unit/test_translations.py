"""The interface speaks Dutch: whole, with the same placeholders, and as compiled."""

import ast
import re
import warnings

import pytest

from tests.support import catalogue

LANGUAGES = ("nl",)
_PLACEHOLDER = re.compile(r"%\(\w+\)[sdif]|%[srd%]|\{\w*\}")


@pytest.fixture(scope="module", params=LANGUAGES)
def translated(request):
    return catalogue.catalogue(request.param)


@pytest.fixture(scope="module")
def strings():
    return catalogue.strings()


def test_no_text_is_translated_inside_an_f_string():
    """The extractor reads an f-string as one token, and so misses the calls in it."""
    hidden = [
        f"{path.relative_to(catalogue.ROOT)}:{call.lineno}"
        for package in catalogue.PACKAGES
        for path in (catalogue.ROOT / package).rglob("*.py")
        for text in ast.walk(ast.parse(path.read_text()))
        if isinstance(text, ast.JoinedStr)
        for call in ast.walk(text)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in catalogue.KEYWORDS
        if call.args and isinstance(call.args[0], ast.Constant)
    ]
    assert hidden == []


def test_differences_between_site_and_catalogue_are_listed(translated, strings):
    """A change of a text does not need its Dutch: `make messages` and a translator follow before the next release."""
    missing = catalogue.list_missing(strings, translated)
    if missing:
        warnings.warn("Without a translation:\n" + "\n".join(missing), stacklevel=1)
    unused = catalogue.list_unused(strings, translated)
    if unused:
        warnings.warn("Translated, but no longer on the site:\n" + "\n".join(unused), stacklevel=1)


@pytest.mark.parametrize(
    ("entries", "missing"),
    [
        ({}, ["page.html: 'A new text'"]),
        ({"A new text": ""}, ["page.html: 'A new text'"]),
        ({"A new text": "Een nieuwe tekst"}, []),
    ],
    ids=["not in the catalogue", "not translated", "translated"],
)
def test_a_string_without_a_translation_is_found(entries, missing):
    translated = catalogue.Catalog(locale="nl")
    for text, translation in entries.items():
        translated.add(text, translation)
    assert catalogue.list_missing([catalogue.Found("A new text", None, [("page.html", 3)])], translated) == missing


def test_a_translation_that_the_site_no_longer_needs_is_found():
    translated = catalogue.Catalog(locale="nl")
    translated.add("A new text", "Een nieuwe tekst")
    translated.add("An old text", "Een oude tekst")
    strings = [catalogue.Found("A new text", None, [("page.html", 3)])]
    assert catalogue.list_unused(strings, translated) == ["'An old text'"]


def test_a_translation_has_the_placeholders_of_its_string(translated):
    for message in translated:
        if not message.id or not catalogue.is_translated(message):
            continue
        for text, original in zip(catalogue.texts(message.string), catalogue.texts(message.id), strict=True):
            assert sorted(_PLACEHOLDER.findall(text)) == sorted(_PLACEHOLDER.findall(original)), message.id


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_django_reads_is_what_was_translated(language):
    assert catalogue.path_of(language, ".mo").read_bytes() == catalogue.compiled(catalogue.catalogue(language))


# Words of the trade that pages for readers and curators replace by plain ones.
_JARGON = re.compile(
    r"\b(stemmed|slug|trace|degraded|groundedness|in force|judgements?|JSON object|p50|p95)\b"
    r"|^given$|^read again$|instructions to a model",
    re.IGNORECASE,
)


def test_pages_use_plain_words(strings):
    said = [text for string in strings for text in catalogue.texts(string.id)]
    assert [text for text in said if _JARGON.search(text)] == []
