"""Candidates and their strengths, for tests."""

from retrieval.index.closeness import E5
from retrieval.search.ranking.preferences import MatchStrengthMeasure
from retrieval.types import Candidate, Retriever, RetrieverScore


def candidate(pk, score, closeness=0.0, boosts=(), calibration=E5):
    cosine = calibration.unrelated + closeness * (calibration.answering - calibration.unrelated)
    said = RetrieverScore(rank=1, score=cosine, normalized=0.0, weight=1.0, contribution=score)
    return Candidate(pk, score, {Retriever.VECTOR: said}, boosts=boosts)


def strengths(shares=(), languages=(), calibration=E5, language="en"):
    return MatchStrengthMeasure(calibration, language, dict(shares), dict(languages))
