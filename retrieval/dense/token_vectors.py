"""Late interaction: each token of a question finds its best match among a passage's tokens.

A passage keeps one bit a dimension, the sign, of the vector of each token that says something: 48 bytes a token at 384
dimensions. The signs of two vectors agree the more the smaller their angle, so that the product of signs with the
question's exact vectors orders passages as exact vectors would; on eight public sets nothing was lost.

Sources: Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
BERT", SIGIR 2020; Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
    Signs = npt.NDArray[np.uint8]

TOKEN_VECTORS_VERSION = 1
"""Raise it when other tokens are kept, or kept otherwise; passages that were encoded before are encoded again."""

# Words that stand in every passage and mean nothing alone, in the languages the site is used in most.
_ENGLISH = """
a an the of in on at to for and or is are was were be been by with as from that this these those it its what which who
whom how when where why do does did can could should would will shall may might i you we they he she there about into
than then not no have has had if so
"""
_DUTCH = """
de het een van op en zijn waren wat welke wie hoe waar waarom wanneer die dat met voor door bij aan werd wordt
"""
FUNCTION_WORDS = frozenset([*_ENGLISH.split(), *_DUTCH.split()])


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text's word pieces as an embedder reads them, without special ones; ``spans`` are [start, end) in the text."""

    pieces: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    def telling(self) -> npt.NDArray[np.bool_]:
        """Which pieces say something: neither punctuation nor function words. Shape (len(pieces),)."""
        return np.array([is_telling(piece) for piece in self.pieces], bool)


@dataclass(frozen=True, slots=True)
class TokenEncoding:
    """One pass of an embedder over one text.

    ``vector`` is the text's unit vector, shape (dimension,), ``token_vectors`` are its tokens' unit vectors, shape
    (len(tokens.pieces), dimension).
    """

    vector: Vectors
    tokens: Tokens
    token_vectors: Vectors


@dataclass(frozen=True, slots=True, eq=False)
class PassageTokens:
    """The telling tokens of a passage. ``signs`` has shape (tokens, dimension / 8), as :func:`packed` makes them.

    ``starts`` and ``ends`` are their places in ``text``, which is the passage as it is embedded: what stands above it,
    and from ``own`` on the passage itself.
    """

    text: str
    own: int
    starts: Sequence[int]
    ends: Sequence[int]
    signs: Signs

    def within(self, start: int, end: int) -> range:
        """The tokens of the passage's own text between two of its characters."""
        first = bisect_left(self.starts, max(0, start) + self.own)
        return range(first, max(first, bisect_right(self.ends, end + self.own)))

    def naming(self, heading: str) -> range:
        """The tokens of the heading, where it first stands above the passage or in it; none where it does not."""
        start = self.text.find(heading) if heading else -1
        if start < 0:
            return range(0)
        first = bisect_left(self.starts, start)
        return range(first, max(first, bisect_right(self.ends, start + len(heading))))


@functools.lru_cache(maxsize=2**16)
def is_telling(piece: str) -> bool:
    return piece not in FUNCTION_WORDS and any(map(str.isalnum, piece))


def packed(encoding: TokenEncoding) -> bytes:
    """The signs of the telling tokens' vectors, in the order of the text; dimension / 8 bytes a token."""
    return np.packbits(encoding.token_vectors[encoding.tokens.telling()] >= 0, axis=1).tobytes()


def unpacked(signs: bytes, dimension: int) -> Vectors:
    """Unit vectors with the signs that :func:`packed` kept, shape (tokens, dimension)."""
    bits = np.unpackbits(np.frombuffer(signs, np.uint8)).reshape(-1, dimension)
    signed: Vectors = bits.astype(np.float32) * 2 - 1
    return signed / np.float32(np.sqrt(dimension))


# The eight bits of each byte, as numbers to multiply with; and tokens whose numbers fit into the processor's cache.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)
_AT_ONCE = 128


def best_matches(query: Vectors, passages: Sequence[bytes]) -> Vectors:
    """For each passage, the similarity of each query token to the nearest of its tokens; shape (passages, tokens).

    ``query`` holds unit vectors, shape (tokens, dimension). A passage without tokens is as far away as can be, -1.
    """
    dimension = query.shape[1]
    best = np.full((len(passages), len(query)), -1.0, np.float32)
    lengths = np.array([len(signs) * 8 // dimension for signs in passages])
    filled = np.flatnonzero(lengths)
    if len(filled):
        # The product with a token's vector of signs is twice that with its bits, less the sum of the query's own.
        signs = np.frombuffer(b"".join(passages), np.uint8).reshape(-1, dimension // 8)
        across = np.ascontiguousarray(query.T)
        products = np.empty((len(signs), len(query)), np.float32)
        bits = np.empty((_AT_ONCE, dimension // 8, 8), np.float32)
        for start in range(0, len(signs), _AT_ONCE):
            some = signs[start : start + _AT_ONCE]
            # Clipping copies straight into the array that is there; no byte is out of range.
            _BITS.take(some, axis=0, out=bits[: len(some)], mode="clip")
            np.matmul(bits[: len(some)].reshape(-1, dimension), across, out=products[start : start + _AT_ONCE])
        starts = np.concatenate([[0], np.cumsum(lengths[filled])[:-1]])
        nearest = np.maximum.reduceat(products, starts, axis=0)
        best[filled] = (2 * nearest - query.sum(axis=1)) / np.float32(np.sqrt(dimension))
    return best


def weighted_mean(matches: Vectors, weights: Vectors) -> Vectors:
    """Each passage's mean match, tokens weighted; unweighted where all weights are 0. Shape (passages,)."""
    total = weights.sum()
    mean: Vectors = matches @ (weights / total) if total > 0 else matches.mean(axis=1)
    return mean
