"""How relevant a text is to a question, by its sentences. PURE; the embedder is an argument.

A sentence's relevancy is the mean of two signals in [0, 1]: the closeness of its vector to the question's
(:class:`Calibration`), and the share of the question's words that it holds, in itself or in the headings above it. On
240 questions each of SQuAD 2 (English) and XQuAD (Dutch), with the sentence that answers and one from another passage,
the mean tells the two apart with an AUROC of 0.987 and 0.998 with multilingual-e5-small (the closeness alone 0.977 and
0.991, the words alone 0.982 and 0.971), and of 0.998 and 0.977 with all-MiniLM-L6-v2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chat.answering.words import stems
from retrieval.text.sentences import split_sentences

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrieval.index.closeness import Calibration

    Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]

# Of the answering sentences 90 % and 89 % lie above it, of the others 100 % below; with all-MiniLM-L6-v2 94 % in both
# languages, and 100 % and 89 %.
THRESHOLD = 0.4


@dataclass(frozen=True, slots=True)
class Relevancy:
    """The sentence of a text that bears most on the question. ``score``, ``similarity`` and ``coverage``: [0, 1]."""

    sentence: str
    score: float
    similarity: float
    coverage: float


def relevancies(
    question: str, texts: Sequence[tuple[str, str]], embed: Embed, calibration: Calibration
) -> list[Relevancy]:
    """The best sentence of each text, given as (headings above it, text); ties go to the earlier sentence.

    A text without words has relevancy 0. ``embed`` gives unit vectors, shape (texts, dimension).
    """
    sentences = [
        (number, heading, text[start:end])
        for number, (heading, text) in enumerate(texts)
        for start, end, _break in split_sentences(text, 0, len(text))
    ]
    best = [Relevancy("", 0.0, 0.0, 0.0) for _ in texts]
    if not sentences:
        return best
    vectors = embed([question, *(sentence for _number, _heading, sentence in sentences)])
    similarities = np.clip([calibration.closeness(cosine) for cosine in (vectors[1:] @ vectors[0]).tolist()], 0.0, 1.0)
    asked = set(stems(question))
    for (number, heading, sentence), similarity in zip(sentences, similarities.tolist(), strict=True):
        coverage = len(asked & set(stems(f"{heading} {sentence}"))) / len(asked) if asked else similarity
        score = (similarity + coverage) / 2
        if score > best[number].score or not best[number].sentence:
            best[number] = Relevancy(sentence, score, similarity, coverage)
    return best
