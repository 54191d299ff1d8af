"""The maps from an embedder's cosines to the common scale."""

from __future__ import annotations

import json

import numpy as np
import pytest

from retrieval.dense.calibration.scales import BUILT_IN, Calibration, Compared, Scale, fit, from_json


def cosines(seed: int = 0, number: int = 2000) -> dict[Compared, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {each: np.clip(rng.normal(0.2, 0.25, number), -0.7, 0.74).astype(np.float32) for each in Compared}


def deformed(sample: dict[Compared, np.ndarray]) -> dict[Compared, np.ndarray]:
    """As of an embedder that finds everything alike; not a straight line, and of other pairs in another order."""
    return {each: (0.7 + 0.3 * np.tanh(values * 1.2)).astype(np.float32)[::-1] for each, values in sample.items()}


def test_a_deformed_scale_is_brought_back() -> None:
    known = cosines()
    calibration = fit(deformed(known), known)
    fresh = cosines(1)
    for each in Compared:
        expected = BUILT_IN.scale(each)(fresh[each])
        found = calibration.scale(each)(deformed(fresh)[each][::-1])
        assert np.percentile(np.abs(found - expected), 98) < 0.02
        scale = calibration.scale(each)
        assert list(scale.cosines) == sorted(set(scale.cosines))
        assert list(scale.values) == sorted(scale.values)
    # A threshold on the common scale, in the embedder's own cosines.
    assert calibration.scale(Compared.TEXTS).cosine_of(0.5) == pytest.approx(0.7 + 0.3 * np.tanh(0.6), abs=0.01)


def test_what_was_stored_is_read_as_it_was() -> None:
    calibration = fit(deformed(cosines()), cosines())
    assert from_json(json.loads(json.dumps(calibration.as_json()))) == calibration
    with pytest.raises(KeyError):
        from_json({"TEXTS": [[0.0], [1.0]]})


def test_what_an_embedder_cannot_compare_keeps_its_scale() -> None:
    known = cosines()
    without_questions = {each: values if each is Compared.TEXTS else values[:0] for each, values in known.items()}
    calibration = fit(without_questions, known)
    assert calibration.scale(Compared.QUESTION_TEXT) == Scale()
    assert isinstance(calibration, Calibration)
    assert calibration.scale(Compared.QUESTION_TEXT).cosine_of(0.4) == 0.4
