"""Tests of passages in the question's language."""

from retrieval.search.ranking.preferences import put_own_language_first
from retrieval.types import AppliedBoost
from tests.support.candidates import candidate, strengths


def order(candidates):
    return [each.chunk_id for each in candidates]


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
    boosted = candidate(0, 9.0, boosts=(AppliedBoost("code=e041", 4.0),))
    ranked = [boosted, candidate(1, 3.0), candidate(2, 1.0, closeness=1.2)]
    assert order(put_own_language_first(ranked, strengths({}, {0: "nl", 2: "en"}))) == [0, 1, 2]
    assert order(put_own_language_first(ranked, strengths({}, {0: "nl", 1: "nl", 2: "en"}))) == [0, 2, 1]
