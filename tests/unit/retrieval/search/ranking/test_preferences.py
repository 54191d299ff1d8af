"""Tests of new subjects as opposed to follow-ups, and of passages in the question's language."""

from retrieval.index.closeness import E5, MINILM
from retrieval.search.ranking.preferences import Strengths, is_new_subject, put_own_language_first
from retrieval.types import BoostScore, Candidate, Retriever, RetrieverScore


def candidate(pk, score, closeness=0.0, boosts=(), calibration=E5):
    cosine = calibration.unrelated + closeness * (calibration.answering - calibration.unrelated)
    said = RetrieverScore(rank=1, score=cosine, normalized=0.0, weight=1.0, contribution=score)
    return Candidate(pk, score, {Retriever.VECTOR: said}, boosts=boosts)


def strengths(shares=(), languages=(), calibration=E5):
    return Strengths(calibration, "en", dict(shares), dict(languages))


ASKED = "Is there wifi in the hospital?"


def order(candidates):
    return [each.chunk_id for each in candidates]


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
    wifi, seal = (candidate(pk, 1.0, closeness=0.5 * (pk == 1), calibration=MINILM) for pk in (1, 2))
    assert not is_new_subject(ASKED, [wifi, seal], [seal, wifi], strengths(languages=known, calibration=MINILM))


def test_passable_passages_in_the_questions_language_come_first():
    ranked = [candidate(pk, 5.0 - pk, closeness=closeness) for pk, closeness in enumerate([0.6, 0.5, 0.8, 0.1, 0.9])]
    languages = {0: "nl", 1: "nl", 2: "en", 3: "en", 4: "en"}
    found = put_own_language_first(ranked, strengths(dict.fromkeys(range(5), 0.4), languages))
    # Passages in the question's language keep their order.
    assert order(found) == [2, 3, 4, 0, 1]
    assert [[boost.name for boost in each.boosts] for each in found] == [[], [], [], ["language=nl"], ["language=nl"]]
    assert found[3].score - found[4].score == 1.0
    # Passages that share no words with the question count if they are as close as the closest in another language.
    assert order(put_own_language_first(ranked, strengths({}, languages))) == [2, 3, 4, 0, 1]
    ranked[0] = candidate(0, 5.0, closeness=0.95)
    assert order(put_own_language_first(ranked, strengths({}, languages))) == [0, 1, 2, 3, 4]


def test_a_passage_with_a_boost_and_one_in_an_unknown_language_stay_where_they_are():
    boosted = candidate(0, 9.0, boosts=(BoostScore("code=e041", 4.0),))
    ranked = [boosted, candidate(1, 3.0), candidate(2, 1.0, closeness=1.2)]
    assert order(put_own_language_first(ranked, strengths({}, {0: "nl", 2: "en"}))) == [0, 1, 2]
    assert order(put_own_language_first(ranked, strengths({}, {0: "nl", 1: "nl", 2: "en"}))) == [0, 2, 1]
