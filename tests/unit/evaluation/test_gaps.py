from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.dashboard.gaps import UnansweredQuestion, cluster_gaps, cluster_vectors, list_distinct_questions

SINCE = datetime(2026, 5, 1, tzinfo=UTC)
# The three directions are orthogonal, each with its near words.
DIRECTIONS = {"pump": [1, 0, 0, 0], "leave": [0, 1, 0, 0], "wifi": [0, 0, 1, 0]}


def asked(number, question, day=1):
    return UnansweredQuestion(f"{number:04}", question, SINCE + timedelta(days=day))


def vector_of(question):
    """Return unit vectors: questions with the same word have a cosine of 0.8 or more."""
    (word,) = [word for word in DIRECTIONS if word in question] or ["wifi"]
    vector = np.array(DIRECTIONS[word], dtype=np.float32)
    vector[3] = (len(question) % 5) / 10
    return vector / np.linalg.norm(vector)


def grouped(questions):
    vectors = np.array([vector_of(words) for words in list_distinct_questions(questions)], dtype=np.float32).reshape(
        -1, 4
    )
    return cluster_gaps(questions, vectors)


questions = st.builds(
    asked,
    st.integers(0, 9999),
    st.sampled_from(
        [f"{start} {word}{end}" for start in ("How", "Why is", "WHY is") for word in DIRECTIONS for end in "? "]
    ),
    st.floats(0, 30),
)
unit_vectors = st.lists(st.tuples(*[st.integers(-5, 5)] * 3).filter(any), max_size=25).map(
    lambda rows: np.array([np.array(row) / np.linalg.norm(row) for row in rows], dtype=np.float32).reshape(-1, 3)
)


@given(st.lists(questions, max_size=30, unique_by=lambda one: one.answer), st.randoms())
def test_every_question_is_in_one_gap_whatever_their_order(held, random):
    found = grouped(held)
    assert sorted(one.answer for gap in found for one in gap.asked) == sorted(one.answer for one in held)
    assert [gap.size for gap in found] == sorted((gap.size for gap in found), reverse=True)
    for gap in found:
        assert len({word for one in gap.asked for word in DIRECTIONS if word in one.question}) == 1
        assert {one.question for one in gap.example_questions} <= set(gap.questions)
    shuffled = list(held)
    random.shuffle(shuffled)
    assert grouped(shuffled) == found


@settings(max_examples=100)
@given(unit_vectors, st.floats(-0.5, 0.99))
def test_groups_are_a_partition_and_alike_enough(vectors, least):
    found = cluster_vectors(vectors, least)
    assert sorted(row for group in found for row in group) == list(range(len(vectors)))
    means = [[float((vectors[list(a)] @ vectors[list(b)].T).mean()) for b in found] for a in found]
    for place, row in enumerate(means):
        # No two groups that are left are alike enough to be joined.
        assert all(mean < least + 1e-4 for other, mean in enumerate(row) if other != place)


def test_groups_are_joined_by_their_mean_likeness():
    """The example is computed by hand: points on a circle, whose cosines are the cosines of the angles between them."""
    angles = np.radians([0, 10, 25, 90, 100, 180])
    vectors = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    # 0 and 10 (0.985), 90 and 100 (0.985), then 25 with the first two: (cos 25 + cos 15) / 2 = 0.936.
    assert cluster_vectors(vectors, 0.9) == [(0, 1, 2), (3, 4), (5,)]
    assert cluster_vectors(vectors, 0.94) == [(0, 1), (2,), (3, 4), (5,)]
    # The mean of the six cosines between the first two groups is 0.114; of 180 with 90 and 100 it is 0.087.
    assert cluster_vectors(vectors, 0.12) == [(0, 1, 2), (3, 4), (5,)]
    assert cluster_vectors(vectors, 0.1) == [(0, 1, 2, 3, 4), (5,)]


def test_the_same_question_in_other_capitals_is_one_wording():
    held = [asked(1, "Why is the pump hot?", 2), asked(2, "why is the  PUMP hot?", 5), asked(3, "How is leave paid?")]
    assert list_distinct_questions(held) == ["how is leave paid?", "why is the pump hot?"]
    first, second = grouped(held)
    assert (first.size, first.questions, first.other_question_count) == (2, ("why is the  PUMP hot?",), 0)
    assert [one.answer for one in first.asked] == ["0002", "0001"]
    assert second.questions == ("How is leave paid?",)
