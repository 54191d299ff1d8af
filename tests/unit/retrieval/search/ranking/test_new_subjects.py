"""Tests of new subjects as opposed to follow-ups."""

import pytest

from retrieval.index.closeness import MINILM
from retrieval.search.ranking.new_subjects import is_new_subject
from retrieval.types import Candidate
from tests.support.candidates import candidate, strengths

ASKED = "Is there wifi in the hospital?"


def test_what_is_found_well_alone_and_badly_by_the_joined_search_is_a_new_subject():
    wifi, seal = candidate(1, 3.0, closeness=0.9), candidate(2, -1.0, closeness=0.1)
    assert is_new_subject(ASKED, [wifi, seal], [seal, wifi], strengths({1: 0.8, 2: 0.1}))
    # The joined search finds as strong a passage.
    assert not is_new_subject(ASKED, [wifi, seal], [seal, wifi], strengths({1: 0.8, 2: 0.9}))
    assert not is_new_subject(ASKED, [wifi, seal], [wifi, seal], strengths({1: 0.8, 2: 0.1}))
    for follow_up in ("Does it have wifi?", "and the wifi?", "hoe lang duurt dat?", "wat kost het?"):
        assert not is_new_subject(follow_up, [wifi, seal], [seal, wifi], strengths({1: 0.8, 2: 0.1}))
    # No passage is strong.
    vague = candidate(1, 3.0, closeness=0.3)
    assert not is_new_subject(ASKED, [vague, seal], [seal, vague], strengths({1: 0.5}))


def test_a_passage_in_another_language_is_as_strong_as_its_closeness():
    wifi, seal = candidate(1, 3.0, closeness=0.5), candidate(2, -1.0, closeness=0.1)
    known = {1: "nl", 2: "en"}
    assert is_new_subject(ASKED, [wifi, seal], [seal, wifi], strengths(languages=known))
    # This embedder is for one language.
    wifi, seal = (candidate(pk, 1.0, closeness=0.8 * (pk == 1), calibration=MINILM) for pk in (1, 2))
    assert not is_new_subject(ASKED, [wifi, seal], [seal, wifi], strengths(languages=known, calibration=MINILM))


@pytest.mark.parametrize(
    ("question", "language", "expected"),
    [
        (ASKED, "en", True),
        ("Is er ook wifi in het ziekenhuis?", "nl", True),
        # They need the questions before them.
        ("and in the other hospital?", "en", False),
        ("How much wifi does it need?", "en", False),
        ("Hoeveel kilo weegt dat apparaat?", "nl", False),
        ("The opening hours?", "en", False),
        # Their pronouns and conjunctions are not listed.
        ("Und wie viel kostet die Lieferung?", "de", False),
        ("wifi hospital rooms upstairs", "", False),
    ],
)
def test_a_complete_question_that_no_shown_passage_answers_is_a_new_subject(question, language, expected):
    seal, kit = candidate(1, 3.0, closeness=0.3), candidate(2, 2.0, closeness=0.2)
    asked = strengths({1: 0.4, 2: 0.1}, language=language)
    assert is_new_subject(question, [kit, seal], [seal, kit], asked) == expected


def test_one_passable_passage_among_those_shown_keeps_the_subject():
    weak = [candidate(pk, 3.0, closeness=0.3) for pk in range(1, 10)]
    assert not is_new_subject(ASKED, weak, weak, strengths({8: 0.5}))
    # The ninth is not shown.
    assert is_new_subject(ASKED, weak, weak, strengths({9: 0.5}))


def test_words_alone_do_not_make_a_new_subject():
    found = [Candidate(1, 3.0, {})]
    assert not is_new_subject(ASKED, found, found, strengths({1: 0.2}))
