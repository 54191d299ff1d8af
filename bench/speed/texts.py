"""Make a synthetic corpus of any size for timing searches: words, topics, passages, questions and vectors.

A search in it takes as long as in real texts:

- Word frequencies follow the law of Zipf and Mandelbrot.
- A passage has words of the whole language and of its topic. So a question of six words matches about the same share of
  the passages (median: a sixth) as questions of public test sets.
- Vectors are drawn at random, because embedding 100,000 passages takes hours: see
  :meth:`SyntheticCorpus.build_vector_generator`.

The same seed gives the same corpus.

Source: Mandelbrot, "An Informational Theory of the Statistical Structure of Language", 1953.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

VOCABULARY = 50_000
TOPICS = 100
TOPIC_WORDS = 400
# Mandelbrot's shift. With 0, the commonest word would be in every passage, like a stop word.
SHIFT = 20
TOPIC_SHIFT = 5
# The words of a topic are not among this many commonest words of the language.
COMMONEST = 200

WORDS_A_PASSAGE = 150
PASSAGES_A_DOCUMENT = 20
TOPICAL_SHARE = 0.4
WORDS_A_SENTENCE = 15

# All words are these nouns and compounds of two of them. Meaningless syllables would give the embedder several times as
# many tokens as a real question.
_NOUNS = """
acid air apple arm army arrow art ash baby back bag ball band bank bar base bath beach bean bear bed bell belt bird
black blood blue board boat body bolt bone book boot bottle bow bowl box boy brain branch brass bread brick bridge bull
button cake camp candle car card cart case cat cell chain chair cheese chest child church city clay clock cloth cloud
coal coat coin cook copper cord corn cotton cow cross crown cup current dance day death desk dirt dog door drain drama
dream dress drop dust ear earth edge egg engine eye face farm father feather field finger fire fish flag flame flight
floor flower fly food foot fork fowl frame fruit garden gas gate girl glass glove goat gold grain grass green ground
group guide gun hair hammer hand harbor hat head heart hill hole honey hook horn horse hospital hour house ice ink iron
island jewel judge key king knee knife lady lake lamp land law leaf leg letter light line lip lock map market milk mine
moon mother mountain mouth nail neck needle nest net night nose ocean office oil page paint paper park pen pipe plane
plant plate pocket point pool port pot power prison rail rain ring river road rock roof room root rose sail salt sand
school sea seed sheep ship shoe shop silk silver sister skin sky smoke snow sound spring square stage star station steam
stone storm street sugar sun table tail tax tea thread thunder tooth tower town train tree valley voice wall water wave
wheel wind window wine wing winter wood wool work world yard year
"""
_QUESTIONS = (
    "What is the {} {} of the {} {} in a {} {}?",
    "How do I {} the {} {} with {} and {} {}?",
    "Why does {} {} not {} when the {} {} is {}?",
    "{} {} {} or {} {} {}",
)


@dataclass(frozen=True, slots=True)
class SyntheticPassage:
    topic: int
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class SyntheticDocument:
    title: str
    passages: tuple[SyntheticPassage, ...]


@dataclass(frozen=True)
class SyntheticCorpus:
    """``size`` passages in documents of 20, each document about one of 100 topics."""

    size: int
    seed: int

    def documents(self) -> Iterator[SyntheticDocument]:
        """Yield documents of 20 passages, ``size`` passages in total. The last document may have fewer."""
        random = self._make_generator("passages")
        lengths = np.clip(random.normal(WORDS_A_PASSAGE, WORDS_A_PASSAGE / 5, self.size), 30, None).astype(int)
        for start in range(0, self.size, PASSAGES_A_DOCUMENT):
            topic = int(random.integers(TOPICS))
            title = " ".join(self._draw_topic_words(random, topic, 3)).capitalize()
            passages = tuple(
                SyntheticPassage(
                    topic=topic,
                    heading=" ".join(self._draw_topic_words(random, topic, 2)).capitalize(),
                    text=_join_sentences(self._draw_mixed_words(random, topic, length, TOPICAL_SHARE)),
                )
                for length in lengths[start : start + PASSAGES_A_DOCUMENT]
            )
            yield SyntheticDocument(title, passages)

    def questions(self, number: int) -> list[str]:
        """Return ``number`` questions, each with three words from a topic and three from the whole vocabulary.

        Frequent words are drawn more often.
        """
        random = self._make_generator("questions")
        questions = []
        for place in range(number):
            words = self._draw_mixed_words(random, int(random.integers(TOPICS)), 6, 0.5)
            questions.append(_QUESTIONS[place % len(_QUESTIONS)].format(*words))
        return questions

    def make_sample_questions(self, topic: int, number: int) -> list[str]:
        random = self._make_generator("samples", topic)
        return [
            _QUESTIONS[place % len(_QUESTIONS)].format(*self._draw_mixed_words(random, topic, 6, 0.5))
            for place in range(number)
        ]

    def build_vector_generator(self, embedded: Sequence[Vectors]) -> Callable[[Sequence[int]], Vectors]:
        """Return a function that draws unit vectors for passages from their topics, shape (passages, width).

        ``embedded`` has for each topic the vectors of some :meth:`samples`, shape (n, width). A passage's vector is the
        mean of its topic plus a normal draw with the covariance of the vectors within a topic. Independent random
        vectors would have no near neighbours, which a vector index needs.
        """
        means = np.stack([vectors.mean(axis=0) for vectors in embedded])
        residuals = np.concatenate([vectors - mean for vectors, mean in zip(embedded, means, strict=True)])
        # residuals = U S V', so normal draws through S V' / sqrt(n) have the same covariance.
        _, scales, directions = np.linalg.svd(residuals / np.sqrt(len(residuals)), full_matrices=False)
        spread = scales[:, None] * directions
        random = self._make_generator("vectors")

        def draw(topics: Sequence[int]) -> Vectors:
            drawn = random.standard_normal((len(topics), len(scales)), dtype=np.float32)
            vectors = means[list(topics)] + drawn @ spread
            unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
            return unit

        return draw

    @cached_property
    def vocabulary(self) -> list[str]:
        """The words, most frequent first: the nouns, then compounds of two nouns in random order.

        The nouns come first, because short words are also the most frequent ones in real texts.
        """
        nouns = _NOUNS.split()
        compounds = [first + second for first in nouns for second in nouns]
        order = self._make_generator("vocabulary").permutation(len(compounds))
        different = dict.fromkeys([*nouns, *(compounds[place] for place in order)])
        return list(different)[:VOCABULARY]

    @cached_property
    def _topics(self) -> list[npt.NDArray[np.int64]]:
        random = self._make_generator("topics")
        return [random.choice(np.arange(COMMONEST, VOCABULARY), TOPIC_WORDS, replace=False) for _ in range(TOPICS)]

    def _draw_topic_words(self, random: np.random.Generator, topic: int, number: int) -> list[str]:
        places = np.searchsorted(_TOPIC_LAW, random.random(number))
        return [self.vocabulary[place] for place in self._topics[topic][places]]

    def _draw_mixed_words(self, random: np.random.Generator, topic: int, number: int, share: float) -> list[str]:
        topical = round(share * number)
        common = np.searchsorted(_LAW, random.random(number - topical))
        words = [*self._draw_topic_words(random, topic, topical), *(self.vocabulary[place] for place in common)]
        return [words[place] for place in random.permutation(number)]

    def _make_generator(self, *purpose: str | int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *"\x00".join(map(str, purpose)).encode()])


def _compute_cumulative_frequencies(words: int, shift: float) -> npt.NDArray[np.float64]:
    frequencies = 1 / (np.arange(1, words + 1) + shift)
    cumulative: npt.NDArray[np.float64] = np.cumsum(frequencies / frequencies.sum())
    cumulative[-1] = 1.0
    return cumulative


_LAW = _compute_cumulative_frequencies(VOCABULARY, SHIFT)
_TOPIC_LAW = _compute_cumulative_frequencies(TOPIC_WORDS, TOPIC_SHIFT)


def _join_sentences(words: Sequence[str]) -> str:
    return " ".join(
        " ".join(words[start : start + WORDS_A_SENTENCE]).capitalize() + "."
        for start in range(0, len(words), WORDS_A_SENTENCE)
    )
