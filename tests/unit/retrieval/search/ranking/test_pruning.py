import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.ranking.lexical_query import LARGEST_FORMULA, ROUNDING, Term, build_candidate_query, choose_rarest

BOUNDS = st.floats(min_value=0.01, max_value=30)
TERMS = st.lists(st.tuples(BOUNDS, st.booleans()), min_size=1, max_size=6).map(
    lambda drawn: [Term(f"'t{n}'", bound, 1, common) for n, (bound, common) in enumerate(drawn)]
)


def matches(notation, held):
    """Return whether PostgreSQL finds a passage with these terms; & binds stronger than |, as `and` does than `or`."""
    if not notation:
        return False
    expression = notation.replace("&", " and ").replace("|", " or ")
    return bool(eval(re.sub(r"'t\d+'", lambda term: str(term[0] in held), expression)))


def passages(terms):
    return [held for n in range(len(terms) + 1) for held in itertools.combinations(terms, n)]


@given(TERMS, st.floats(min_value=0, max_value=100))
def test_exactly_the_passages_that_can_reach_the_threshold_match(terms, threshold):
    notation = build_candidate_query(terms, threshold)
    assert notation.count("'") // 2 <= LARGEST_FORMULA
    for held in passages(terms):
        bound = sum(term.bound for term in held)
        is_candidate = any(not term.common for term in held)
        found = matches(notation, {term.notation for term in held})
        if is_candidate and bound >= threshold:
            assert found
        if not is_candidate:
            assert not found
        if bound < threshold - 2 * ROUNDING * max(1.0, threshold):
            assert not found


def test_the_formula_is_short():
    terms = [Term("'t0'", 10.0, 5), Term("'t1'", 4.0, 90), Term("'t2'", 3.0, 200), Term("'t3'", 1.0, 600, common=True)]
    assert build_candidate_query(terms, 7.0) == "'t0' | 't1' & ( 't2' )"
    assert build_candidate_query(terms, 8.0) == "'t0' | 't1' & ( 't2' & ( 't3' ) )"


def test_the_rarest_terms_come_first_and_at_least_one():
    terms = [Term("'t0'", 1.0, 500), Term("'t1'", 3.0, 20), Term("'t2'", 2.0, 90), Term("'t3'", 0.1, 1, common=True)]
    assert [term.notation for term in choose_rarest(terms, 10)] == ["'t1'"]
    assert [term.notation for term in choose_rarest(terms, 110)] == ["'t1'", "'t2'"]
    assert [term.notation for term in choose_rarest(terms, 10_000)] == ["'t1'", "'t2'", "'t0'"]
    assert choose_rarest([terms[3]], 10) == []
