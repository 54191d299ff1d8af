"""Curves of refusals, and the weights fitted for them."""

from __future__ import annotations

import pytest

from bench.answers.refusals import RefusalCase, curves, fit_weights, logit, split_by_group


def case(kind: str, group: str, closeness: float) -> RefusalCase:
    return RefusalCase(kind, group, {"closeness": closeness, "coverage": closeness / 2})


ANSWERED = [case("answerable", f"a{number}", 0.5 + number / 40) for number in range(20)]
WITHHELD = [case("withheld", f"a{number}", 0.4 + number / 40) for number in range(20)]


def test_a_curve_tells_what_is_refused_at_each_share_of_wrong_refusals() -> None:
    cases = [*ANSWERED, *WITHHELD]
    (curve,) = curves(cases, [each.features["closeness"] for each in cases])
    assert (curve.kind, curve.questions) == ("withheld", 20)
    assert 0.5 < curve.area < 1
    assert curve.refused == pytest.approx((4 / 20, 4 / 20, 5 / 20, 6 / 20))


def test_too_few_questions_have_no_curve() -> None:
    assert curves([*ANSWERED, *WITHHELD[:3]], [0.0] * 23) == []


def test_halves_share_no_article() -> None:
    tuning, judged = split_by_group([*ANSWERED, *WITHHELD, case("off-topic", "", 0.1)])
    assert not {each.group for each in tuning} & {each.group for each in judged}
    assert any(each.kind == "off-topic" for each in judged)


def test_the_logit_and_fitted_weights_follow_the_features() -> None:
    assert logit(WITHHELD[0]) < logit(ANSWERED[-1])
    _, weights = fit_weights([*ANSWERED, *WITHHELD])
    assert all(weight > 0 for weight in weights.values())
