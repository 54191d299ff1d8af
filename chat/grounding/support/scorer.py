"""Sentences of an answer held against the passages they rest on. PURE; the embedder is handed in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chat.grounding.support.claims import Claim, claim_of
from chat.grounding.support.features import Features, features_of
from chat.grounding.support.passages import Evidence, EvidencePassage
from chat.grounding.support.places import Place, ranked_places
from chat.grounding.support.scoring import THRESHOLD, WITH_TOKENS, WORDS_ONLY, Reason, reasons, support
from chat.grounding.support.similarity import Comparison, Encodings, closest, compare, compared_places

if TYPE_CHECKING:
    from chat.grounding.support.similarity import EncodeAll

_WORD = re.compile(r"\w")
_EDGES = " \t\n*_`#>-•"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer, and the markers of the passages it rests on; none: on any of them."""

    text: str
    markers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """How far a statement is borne out, from 0 to 1, what speaks against it, and the place that comes closest.

    ``features`` is None for a statement that stands in a passage word for word. ``place`` is None when no passage holds
    any of its words.
    """

    support: float
    reasons: tuple[Reason, ...]
    place: Place | None
    features: Features | None = None

    @property
    def supported(self) -> bool:
        return self.support >= THRESHOLD


class SupportScorer:
    """Holds statements against the passages of one answer; each sentence is encoded once, whatever is held against it.

    ``encode`` gives token vectors; None for an embedder that has none: then words alone decide, by weights of their
    own.
    """

    def __init__(self, passages: Sequence[EvidencePassage], encode: EncodeAll | None) -> None:
        self._passages = tuple(passages)
        self._evidence = Evidence(passages)
        self._encodings = Encodings(encode) if encode is not None else None
        self._weights = WITH_TOKENS if encode is not None else WORDS_ONLY

    def judge(self, statements: Sequence[Statement]) -> list[Judgement | None]:
        """One judgement a statement, in order; None for a statement that claims nothing (:func:`claim_of`).

        A statement is held against the passages it cites. When these do not bear it out and all together do, it stays
        unsupported, for the reason `elsewhere`, and its place is there. One that cites no passage that is given is held
        against all of them, and has the reason `uncited`.
        """
        scopes = [self._cited(statement.markers) for statement in statements]
        judgements = self._measured([(each.text, scope) for each, scope in zip(statements, scopes, strict=True)])
        doubtful = [
            number
            for number, judgement in enumerate(judgements)
            if judgement is not None and not judgement.supported and 0 < len(scopes[number]) < len(self._passages)
        ]
        anywhere = self._measured([(statements[number].text, self._passages) for number in doubtful])
        for number, other in zip(doubtful, anywhere, strict=True):
            own = judgements[number]
            if own is not None and other is not None and other.supported:
                judgements[number] = replace(own, reasons=(*own.reasons, Reason.ELSEWHERE), place=other.place)
        return [
            replace(judgement, reasons=(*judgement.reasons, Reason.UNCITED))
            if judgement is not None and not scope
            else judgement
            for judgement, scope in zip(judgements, scopes, strict=True)
        ]

    def judge_each(self, cited: Sequence[tuple[str, int]]) -> list[Judgement | None]:
        """One judgement for each text and the marker of the one passage that it is held against, as :meth:`judge`."""
        return self._measured([(text, self._cited((marker,))) for text, marker in cited])

    def _cited(self, markers: Sequence[int]) -> tuple[EvidencePassage, ...]:
        return tuple(passage for passage in self._passages if passage.marker in markers)

    def _measured(self, asked: Sequence[tuple[str, Sequence[EvidencePassage]]]) -> list[Judgement | None]:
        """What :meth:`_measure` says of those texts that claim something; an empty scope is all the passages."""
        claims = [claim_of(text) for text, _ in asked]
        measured = iter(
            self._measure(
                [
                    (claim, scope or self._passages)
                    for claim, (_, scope) in zip(claims, asked, strict=True)
                    if claim is not None
                ]
            )
        )
        return [next(measured) if claim is not None else None for claim in claims]

    def _measure(self, claims: Sequence[tuple[Claim, Sequence[EvidencePassage]]]) -> list[Judgement]:
        """One judgement a claim and its passages, in order; the texts of all are encoded in one call."""
        verbatim = [_verbatim_place(claim, scope, self._evidence) for claim, scope in claims]
        compared = [
            compared_places(claim, scope, self._evidence) if self._encodings and place is None else ()
            for (claim, scope), place in zip(claims, verbatim, strict=True)
        ]
        if self._encodings is not None:
            texts = [
                text
                for (claim, _), places in zip(claims, compared, strict=True)
                if places
                for text in (claim.text, *(place.sentence.text for place in places))
            ]
            self._encodings.prepare(texts)
        return [
            Judgement(1.0, (), place) if place is not None else self._judgement(claim, scope, places)
            for (claim, scope), place, places in zip(claims, verbatim, compared, strict=True)
        ]

    def _judgement(self, claim: Claim, scope: Sequence[EvidencePassage], places: Sequence[Place]) -> Judgement:
        comparison: Comparison | None = None
        place = next((place for place in ranked_places(claim, scope, self._evidence) if place.share > 0), None)
        if self._encodings is not None:
            comparison = compare(claim, places, self._encodings)
            place = closest(claim, comparison, self._evidence) or place
        features = features_of(claim, scope, self._evidence, comparison)
        return Judgement(support(features, self._weights), reasons(features, self._weights), place, features)


def _verbatim_place(claim: Claim, scope: Sequence[EvidencePassage], evidence: Evidence) -> Place | None:
    """Where a claim stands word for word, but for white space and markup at its ends; None where it does not."""
    words = " ".join(claim.text.strip(_EDGES).split())
    holders = [passage for passage in scope if _holds(" ".join(passage.text.split()), words)]
    return next(iter(ranked_places(claim, holders, evidence)), None)


def _holds(text: str, words: str) -> bool:
    """Whether the words stand in the text, not as parts of longer ones."""
    at = text.find(words)
    while at >= 0:
        if not _WORD.match(text[at - 1 : at]) and not _WORD.match(text, at + len(words)):
            return True
        at = text.find(words, at + 1)
    return False
