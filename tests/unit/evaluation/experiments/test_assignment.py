from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.models.arms import Arm, assign, pseudonym

SUBJECTS = [f"visitor:{number:032x}" for number in range(20_000)]


def arms(salt: str, traffic_share: float = 1.0) -> list[Arm | None]:
    return [assign(salt, one, traffic_share) for one in SUBJECTS]


@pytest.mark.parametrize("traffic", [1.0, 0.6, 0.1])
def test_the_shares_are_those_asked_for(traffic):
    counts = Counter(arms("salt", traffic))
    within = counts[Arm.CONTROL] + counts[Arm.TREATMENT]
    assert abs(within / len(SUBJECTS) - traffic) < 4 * (traffic * (1 - traffic) / len(SUBJECTS)) ** 0.5 + 1e-12
    assert abs(counts[Arm.TREATMENT] / within - 0.5) < 4 * (0.25 / within) ** 0.5


def test_assignments_are_uniform_in_every_tenth_of_the_traffic():
    """A chi-square over ten nested shares of traffic: the arm is drawn apart from the place in the traffic."""
    counts = [Counter(arms("salt", tenth / 10)) for tenth in range(1, 11)]
    sizes = np.diff([count[Arm.CONTROL] + count[Arm.TREATMENT] for count in counts], prepend=0)
    treatments = np.diff([count[Arm.TREATMENT] for count in counts], prepend=0)
    expected = len(SUBJECTS) / 10
    assert ((sizes - expected) ** 2 / expected).sum() < 27.9, "9 degrees of freedom, one in a thousand"
    assert ((treatments - sizes / 2) ** 2 / (sizes / 4)).sum() < 29.6, "10 degrees of freedom, one in a thousand"


@given(st.text(max_size=40), st.text(min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_a_visitor_keeps_the_arm_and_more_traffic_moves_nobody(salt, subject, share, other):
    smaller, larger = sorted((share, other))
    before = assign(salt, subject, smaller)
    assert before == assign(salt, subject, smaller)
    if before is not None:
        assert before == assign(salt, subject, larger)


def test_another_experiment_shuffles_anew():
    first, second = arms("one"), arms("two")
    agree = sum(a == b for a, b in zip(first, second, strict=True))
    assert abs(agree / len(SUBJECTS) - 0.5) < 0.02


def test_nobody_is_left_in_and_without_identity_everybody_is_out():
    assert set(arms("salt", traffic_share=0.0)) == {None}
    assert assign("salt", "", 1.0) is None
    assert None not in arms("salt", traffic_share=1.0)


def test_a_share_is_a_share():
    with pytest.raises(ValueError, match="between 0 and 1"):
        assign("salt", "user:1", 1.5)


def test_a_pseudonym_belongs_to_one_experiment():
    assert pseudonym("one", "user:1") == pseudonym("one", "user:1")
    assert pseudonym("one", "user:1") != pseudonym("two", "user:1")
    assert len(pseudonym("one", "user:1")) == 32
