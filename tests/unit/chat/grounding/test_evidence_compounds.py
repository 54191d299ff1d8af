"""What the words of Dutch texts hold of a question whose words they write as one."""

from __future__ import annotations

import pytest
from chat.grounding.evidence.coverage import COMPOUND_SHARE, related_words
from chat.grounding.evidence.relevance import UnitScoring

from chat.grounding.units import quotable_units
from chat.types import ContextSource
from retrieval.search.context import ContextBlock, Passage


def source(marker: int, content: str) -> ContextSource:
    passage = Passage(
        chunk_id=marker,
        document_id=marker,
        document_title="",
        document_url="",
        source=f"{marker}.md",
        collection="library",
        ordinal=0,
        start=0,
        end=len(content),
        page=None,
        heading_path=(),
        content=content,
        content_hash="",
        token_count=10,
    )
    return ContextSource(marker, ContextBlock(passage, (passage,), content, 0, len(content), 1.0, 10))


def coverages(question: str, *texts: str) -> list[float]:
    sources = [source(marker, text) for marker, text in enumerate(texts, start=1)]
    scored = UnitScoring(question, quotable_units(sources), lambda _question, _units: None).scored()
    return [each.coverage for each in sorted(scored, key=lambda each: each.unit.source.marker)]


def test_a_compound_holds_a_word_in_part() -> None:
    whole, compound, neither = coverages(
        "Waar is een centrum?",
        "Er is een centrum op de begane grond.",
        "Er is een stiltecentrum op de eerste verdieping.",
        "Er is een garage op de begane grond.",
    )
    assert whole == 1.0
    assert compound == pytest.approx(COMPOUND_SHARE)
    assert neither == 0.0


def test_a_part_holds_a_compound_by_its_share_of_the_letters() -> None:
    (share,) = coverages("Wat is een heupoperatie?", "Na een operatie aan de heup mag u niet rijden.")
    assert share == pytest.approx(COMPOUND_SHARE * len("operati") / len("heupoperati"))


def test_english_texts_hold_words_whole() -> None:
    assert coverages("Where is the pass?", "The password is kept in the safe for you and for them.") == [0.0]


def test_related_words_of_each_wanted_one() -> None:
    assert related_words(["bezoek", "hond"], ["bezoekur", "bezoeker", "hulphond", "kat"]) == {
        "bezoek": {"bezoekur": COMPOUND_SHARE},
        "hond": {"hulphond": COMPOUND_SHARE},
    }
    assert related_words([], ["bezoekur"]) == {}
    assert related_words(["bezoek"], []) == {}


def test_a_separated_verb_leaves_its_particle() -> None:
    assert related_words(["meenem", "meer", "terugbell"], ["mee", "terug", "brengt"]) == {
        "meenem": {"mee": COMPOUND_SHARE},
        "terugbell": {"terug": COMPOUND_SHARE},
    }
