"""Preferred passages: in a collection that the question names, near the last answer, below a code of the question."""

import pytest

from retrieval.models import Collection
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.search.understanding.named_things import find_alphanumeric_codes, find_named_section
from retrieval.types import Turn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def handbooks(ingest):
    """Three organisations that say much the same."""
    found = {}
    for slug, name, days in (("acme", "Acme Pumps", 25), ("globex", "Globex", 30), ("initech", "Initech", 28)):
        collection = Collection.objects.create(slug=slug, name=name, text_search_configuration="english")
        text = f"# Holidays\n\nEverybody has {days} days of holiday a year.\n\n# Travel\n\nThe office books trips.\n"
        found[slug] = ingest(collection, "handbook.md", text)
    return found


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("How many days of holiday has one at Globex?", ("globex",)),
        ("How many days of holiday do people of ACME Pumps have?", ("acme",)),
        ("How many days of holiday are there at initech and globex?", ("globex", "initech")),
    ],
)
def test_passages_of_a_collection_that_the_question_names_come_first(handbooks, question, named):
    result = search(question, build_unrestricted_filters())
    assert sorted(result.trace.named_collections) == list(named)
    first = [hit.passage.collection for hit in result.hits[: len(named)]]
    assert sorted(first) == list(named)
    assert [boost.name for boost in result.hits[0].candidate.boosts] == [f"collection={first[0]}"]


@pytest.mark.parametrize("question", ["How many days of holiday?", "globexes and pumps of acmes"])
def test_parts_of_words_and_of_names_name_no_collection(handbooks, question):
    assert search(question, build_unrestricted_filters()).trace.named_collections == ()


@pytest.mark.parametrize("name", ["Parts", "Documents", "Trips"])
def test_an_ordinary_word_names_no_collection(handbooks, name):
    Collection.objects.filter(slug="globex").update(name=name, slug=name.lower())
    question = f"Which {name.lower()} has one at initech?"
    assert search(question, build_unrestricted_filters()).trace.named_collections == ("initech",)


def test_a_follow_up_favours_the_document_of_the_answer_before(handbooks):
    question, asked = "and who books trips?", "How many days of holiday has one?"

    def margin(slug, before):
        scores = {
            hit.passage.collection: hit.score
            for hit in search(question, build_unrestricted_filters(), history=[before]).hits
        }
        return scores[slug] - max(score for other, score in scores.items() if other != slug)

    for slug, document in handbooks.items():
        before = Turn(asked, "30 days [1].", (document.pk,), (slug,))
        assert margin(slug, before) > margin(slug, Turn(asked, "30 days."))


def test_a_named_collection_counts_more_than_the_answer_before(handbooks):
    before = Turn("How many days of holiday?", "25 days [1].", (handbooks["acme"].pk,), ("acme",))
    assert (
        search("and at Globex?", build_unrestricted_filters(), history=[before]).hits[0].passage.collection == "globex"
    )


def test_what_holds_a_code_of_the_question_comes_before_what_holds_one_like_it(collection, ingest):
    ingest(collection, "bulletin.md", "# Bulletin on the MX-9910-W\n\nThe pump MX-9910-W: the pump leaks, it is hot.")
    ingest(collection, "codes.md", "# Codes\n\nE-041 means dry running.\n\nMX-9920-W has no codes.\n")
    ingest(collection, "help.md", "# What does a code mean\n\nWhat a code such as E-907 means: see the display.")
    assert search("the pump MX-9920-W", build_unrestricted_filters()).hits[0].passage.source == "codes.md"
    first = search("What does E-041 mean and what should I do?", build_unrestricted_filters()).hits[0]
    assert first.passage.source == "codes.md"
    assert [boost.name for boost in first.candidate.boosts] == ["code=e041"]
    assert sum(
        [
            *(each.contribution for each in first.candidate.retrievers.values()),
            *(boost.contribution for boost in first.candidate.boosts),
        ]
    ) == pytest.approx(first.score)


def test_years_words_ordinals_and_measures_are_no_codes():
    assert find_alphanumeric_codes("In 2026 the pump MX-9920-W replaced A1 and e-mail by E-041") == {"mx9920w", "e041"}
    assert (
        find_alphanumeric_codes("Who ruled in the 19th century, in the 1970s, on the 3de, at 10am, with 500mg?")
        == set()
    )


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What is section 3.2 about?", "orange badge"),
        ("Wat staat er in paragraaf 3.2?", "orange badge"),
        ("What does clause 1.2 say?", "two months"),
        ("What is section 3.2.1 about?", "permit"),
    ],
)
def test_the_section_that_the_question_names_comes_first(collection, ingest, question, wanted):
    filler = "Everybody is asked to read this page with care before the first working day. " * 12
    parts = [
        f"# 3 Access\n\nThe rules follow. {filler}",
        f"## 3.2 Contractors\n\nContractors wear an orange badge. {filler}",
        f"### 3.2.1 Papers\n\nThey carry a permit. {filler}",
        f"# 4 Safety\n\nFor exceptions see section 3.2 and section 3.2.1, and clause 1.2 of the contract. {filler}",
        f"# Contract\n\n1. Term\n   - 1.1 It begins in May.\n   - 1.2 Notice is two months.\n\n{filler}",
    ]
    ingest(collection, "rules.md", "\n\n".join(parts))
    assert wanted in search(question, build_unrestricted_filters()).hits[0].passage.content


def test_a_question_without_a_named_section_has_none():
    assert find_named_section("What is the price in 2026 of part 3.2?") is None
    assert find_named_section("What does § 12 say?") == ("§", "12")


def test_a_single_number_is_that_of_a_heading_or_of_its_noun(collection, ingest):
    """A list item is no match: every list has a second item."""
    filler = "Everybody is asked to read this page with care before the first working day. " * 12
    ingest(collection, "list.md", f"# Step by step\n\nStep 1 and step 2 of the work:\n\n1. Wait.\n2. Sit.\n\n{filler}")
    ingest(collection, "steps.md", f"# Start\n\nStep 2: open the valve of the pump.\n\n{filler}")
    ingest(collection, "chapters.md", f"# Chapter 2 Seals\n\nA seal wears.\n\n{filler}")
    for question, source in (("What is step 2?", "steps.md"), ("What is chapter 2 about?", "chapters.md")):
        first = search(question, build_unrestricted_filters()).hits[0]
        assert (first.passage.source, [boost.name for boost in first.candidate.boosts]) == (source, ["code=2"])


def test_what_is_in_the_questions_language_comes_before_what_is_in_another(ingest):
    mixed = Collection.objects.create(slug="mixed", name="Mixed")
    ingest(mixed, "guarantee.md", "# Guarantee\n\nThe guarantee on a pump covers faults and is valid for two years.")
    ingest(mixed, "terms.md", "# Terms\n\nYou have to register the pump, or the guarantee is valid for a year.")
    ingest(mixed, "hours.md", "# Hours\n\nThe shop is open from nine to five, and on Sunday it is closed.")
    text = (
        "# Pump guarantee\n\nDe vraag “How long is the pump guarantee valid?” krijgen wij van iedereen die bij ons een "
        "pomp heeft gekocht, maar het antwoord staat niet in deze brief: dat staat op de website van de fabriek."
    )
    dutch = ingest(mixed, "garantie.md", text)
    result = search("How long is the pump guarantee valid?", build_unrestricted_filters())
    found = [hit.passage.source for hit in result.hits]
    assert dutch.language == "nl"
    assert set(found[:2]) == {"guarantee.md", "terms.md"}
    lost = next(hit.candidate for hit in result.hits if hit.passage.source == "garantie.md")
    assert [boost.name for boost in lost.boosts] == ["language=nl"]
