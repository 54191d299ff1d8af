"""The handbook, which the site answers from, names the defaults that the code has."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from chat.answering.evidence import ANSWERABLE
from chat.conversations.history import REMEMBERED_TURNS
from retrieval.documents import formats
from retrieval.fusion_methods import METHODS
from retrieval.profile_settings import CLASS_WEIGHTS, ProfileSettings
from retrieval.search.ranking.vector_ranker import EXACT_UP_TO
from retrieval.search.understanding.joined_questions import MOST_JOINED
from retrieval.types import SearchMethod

IN_WORDS = {2: "two", 3: "three"}
DEFAULTS = ProfileSettings()
WEIGHTS = METHODS[SearchMethod(settings.RETRIEVAL_DEFAULT_METHOD)].weights


SENTENCES = {
    "02-asking-questions.md": [
        f"A question has at most {settings.QUESTION_MAX_CHARACTERS} characters.",
        f"together with your last {IN_WORDS[MOST_JOINED]} questions",
    ],
    "04-how-search-works.md": [
        f"The default method is `{settings.RETRIEVAL_DEFAULT_METHOD}`, "
        f"{'without a' if settings.RETRIEVAL_RERANKER == 'none' else 'with the'} reranker: "
        f"{WEIGHTS.vector:.0%} vector, {WEIGHTS.lexical:.0%} lexical.",
        f"within a budget of {settings.CONTEXT_BUDGET_TOKENS:,} tokens",
        f"with k = {DEFAULTS.rrf_k} and equal weights",
        f"a bonus of {DEFAULTS.both_legs_bonus:g} for what both found",
        f"Up to {EXACT_UP_TO:,} passages are compared one by one",
        f"below {ANSWERABLE:.0%} the closest passages are shown in place of an answer",
    ],
    "08-glossary-and-faq.md": [
        f"Yes, your last {IN_WORDS[MOST_JOINED]} questions",
        f"A language model also sees the last {IN_WORDS[REMEMBERED_TURNS]} questions with their answers.",
    ],
}


def _text_of(name):
    return Path(settings.BASE_DIR / "demo" / "handbook" / name).read_text().replace(" %", "%")


@pytest.mark.parametrize("name", SENTENCES)
def test_the_handbook_names_the_defaults(name):
    text = _text_of(name)
    assert not [each for each in SENTENCES[name] if each not in text]


@pytest.mark.parametrize("query_class", CLASS_WEIGHTS)
def test_the_handbook_names_the_weights_of_each_class(query_class):
    weights = CLASS_WEIGHTS[query_class]
    row = rf"^\| {query_class.value} \|[^|\n]*\| {weights.vector:.0%} \| {weights.lexical:.0%} \|$"
    found = re.search(row, _text_of("04-how-search-works.md"), re.IGNORECASE | re.MULTILINE)
    assert found is not None, f"demo/handbook/04-how-search-works.md has no row {row}"


@pytest.mark.parametrize("method", SearchMethod)
def test_the_handbook_has_a_row_for_each_method(method):
    found = re.search(rf"^\| `{method.value}` \|", _text_of("04-how-search-works.md"), re.MULTILINE)
    assert found is not None, f"Add a row for `{method.value}` to the methods in demo/handbook/04-how-search-works.md."


@pytest.mark.parametrize("method", [method for method in METHODS if not METHODS[method].is_single])
def test_the_handbook_says_what_each_method_does_with_a_missing_passage(method):
    question = "## What if a passage is missing from one list?"
    answer = _text_of("04-how-search-works.md").partition(question)[2].partition("\n## ")[0]
    assert f"`{method.value}`" in answer, f"Name `{method.value}` under “{question}” in the handbook."


def test_the_handbook_advises_on_each_format():
    table = _text_of("03-curating-documents.md").partition("| Format |")[2].partition("\n\n")[0]
    missing = [known.label for known in formats.read_formats() if known.label.casefold() not in table.casefold()]
    assert missing == [], "Add them to the table of formats in demo/handbook/03-curating-documents.md."
