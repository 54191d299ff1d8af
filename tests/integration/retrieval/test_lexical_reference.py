"""BM25 compared with another implementation: on the same lexemes, the same scores in the same order.

The other one is bm25s (Lu, "BM25S: Orders of magnitude faster lexical search via eager sparse scoring", 2024).
"""

import random

import bm25s
import numpy as np
import pytest
from django.conf import settings
from django.db import connection

from bench.bulk import DocumentToWrite, replace_documents
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import FIELD_BOOSTS, NewChunk
from retrieval.models import Chunk, Collection, Lexeme
from retrieval.profile_settings import ProfileSettings
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.ranking.lexical_query import COMMON_SHARE, build_queries
from retrieval.search.ranking.lexical_ranker import Bm25Ranker
from retrieval.search.ranking.plans import build_plan
from retrieval.search.ranking.tsquery import MatchesTsQuery
from retrieval.text.chunking import hash_content
from retrieval.types import SearchMethod

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = build_plan(ProfileSettings(method=SearchMethod.LEXICAL, fuzzy=False), retriever_timeout_seconds=30.0)
PASSAGES = 150
SYLLABLES = ["ba", "de", "ki", "lo", "mu", "ne", "pra", "ro", "sti", "tu", "va", "zo"]


def write_passages(collection, random_, passages, *, everywhere=""):
    """Write seeded passages whose words are as unevenly spread as words of a language."""
    words = sorted({"".join(random_.choices(SYLLABLES, k=random_.randint(2, 4))) for _ in range(600)})
    random_.shuffle(words)
    frequencies = [1 / (place + 1) for place in range(len(words))]

    def text(shortest, longest):
        return " ".join(random_.choices(words, frequencies, k=random_.randint(shortest, longest)))

    embedder = active_embedder()
    documents = []
    for number in range(passages):
        content = f"{text(5, 120)} {everywhere}".strip()
        vector = np.array([random_.gauss(0, 1) for _ in range(embedder.dimension)], np.float32)
        chunk = NewChunk(
            start=0, end=len(content), page=None, heading_path=(text(1, 4),) if random_.random() < 0.7 else (),
            content=content, content_hash=hash_content(content, ()), token_count=100,
            questions=(text(3, 9),) if random_.random() < 0.5 else (), vector=vector / np.linalg.norm(vector),
        )  # fmt: skip
        documents.append(DocumentToWrite(f"{number}.txt", text(1, 5), "en", content, str(number), "", (chunk,)))
    replace_documents(collection, documents, embedder)


class Reference:
    """bm25s' scores on the stored lexemes, each as often as its fields' boosts say.

    Half a token there is none: all are taken twice, with k1 doubled too, which leaves tf / (tf + k1 * norm) as it is.
    Its Lucene form has no (k1 + 1) above the line.
    """

    def __init__(self):
        self.chunk_ids = list(Chunk.objects.order_by("pk").values_list("pk", flat=True))
        tokens = {pk: [] for pk in self.chunk_ids}
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id, lexeme, label FROM retrieval_chunk, "
                "unnest(search_vector) AS term(lexeme, positions, labels), unnest(labels) AS label ORDER BY id"
            )
            for pk, lexeme, label in cursor.fetchall():
                times = 2 * FIELD_BOOSTS["ABCD".index(label)]
                assert times == int(times)
                tokens[pk] += [lexeme] * int(times)
        self._model = bm25s.BM25(k1=2 * settings.BM25_K1, b=settings.BM25_B, method="lucene", dtype="float64")
        self._model.index([tokens[pk] for pk in self.chunk_ids], show_progress=False)

    def scores(self, question):
        known = [lexeme for lexeme in question if lexeme in self._model.vocab_dict]
        scores = self._model.get_scores(known) if known else np.zeros(len(self.chunk_ids))
        return {pk: (settings.BM25_K1 + 1) * float(score) for pk, score in zip(self.chunk_ids, scores, strict=True)}


def test_scores_and_order_equal_those_of_bm25s(collection):
    random_ = random.Random(20)
    write_passages(collection, random_, PASSAGES)
    reference = Reference()
    lexemes = list(
        Lexeme.objects.filter(document_frequency__lte=COMMON_SHARE * PASSAGES).order_by("lexeme").values_list("lexeme")
    )
    for _ in range(10):
        question = sorted({lexeme for (lexeme,) in random_.choices(lexemes, k=random_.randint(1, 6))})
        (query,) = build_queries(" ".join(question), [collection.pk], fuzzy=False)
        expected = reference.scores(sorted(query.idf))
        matching = [pk for pk in reference.chunk_ids if expected[pk] > 0]
        ranking = Bm25Ranker(" ".join(question), build_unrestricted_filters(), PLAN).rank(PASSAGES)
        scores = {chunk.chunk_id: chunk.score for chunk in ranking.chunks}
        assert sorted(scores) == matching
        # Term weights are kept as four-byte floats.
        assert scores == pytest.approx({pk: expected[pk] for pk in matching}, rel=1e-6)
        order = [chunk.chunk_id for chunk in ranking.chunks]
        for first, second in zip(order, order[1:], strict=False):
            assert expected[first] >= expected[second] * (1 - 1e-6)
        assert [scores[pk] for pk in order] == sorted(scores.values(), reverse=True)


def test_a_lexeme_of_every_passage_scores_but_makes_no_candidate(collection):
    write_passages(collection, random.Random(21), 60, everywhere="ubiquitous")
    rare = Lexeme.objects.filter(document_frequency=2).order_by("lexeme").values_list("lexeme", flat=True)[0]
    holders = set(Chunk.objects.filter(search_vector=rare).values_list("pk", flat=True))
    (query,) = build_queries(f"ubiquitous {rare}", [collection.pk])
    assert query.matching == (rare,)
    assert query.idf.keys() == {"ubiquit", rare}
    ranking = Bm25Ranker(f"ubiquitous {rare}", build_unrestricted_filters(), PLAN).rank(60)
    assert {chunk.chunk_id for chunk in ranking.chunks} == holders
    expected = Reference().scores(["ubiquit", rare])
    assert {chunk.chunk_id: chunk.score for chunk in ranking.chunks} == pytest.approx(
        {pk: expected[pk] for pk in holders}, rel=1e-6
    )
    assert len(Bm25Ranker("ubiquitous", build_unrestricted_filters(), PLAN).rank(60).chunks) == 60


def test_frequencies_are_those_of_all_collections_searched():
    """One search has three languages, one measure of rarity, and each collection's own lexemes."""
    for slug, configuration in [("en", "english"), ("nl", "dutch"), ("xx", "simple")]:
        made = Collection.objects.create(slug=slug, name=slug, text_search_configuration=configuration)
        write_passages(made, random.Random(slug), 40)
    searched = list(Collection.objects.values_list("pk", flat=True))
    word = Lexeme.objects.filter(collection__slug="xx", document_frequency__lte=10).order_by("lexeme")[0].lexeme
    holders = set()
    queries = build_queries(word, searched)
    assert "simple" in {query.configuration for query in queries}
    for query in queries:
        for lexeme, idf in query.idf.items():
            frequency = sum(Lexeme.objects.filter(lexeme=lexeme).values_list("document_frequency", flat=True))
            assert idf == pytest.approx(np.log1p((120 - frequency + 0.5) / (frequency + 0.5)))
        held = Chunk.objects.filter(collection__in=query.collections)
        holders |= set(held.filter(MatchesTsQuery("search_vector", query.tsquery)).values_list("pk", flat=True))
    ranking = Bm25Ranker(word, build_unrestricted_filters(), PLAN).rank(120)
    assert {chunk.chunk_id for chunk in ranking.chunks} == holders
    scores = [chunk.score for chunk in ranking.chunks]
    assert scores == sorted(scores, reverse=True)
