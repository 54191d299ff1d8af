from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from bench.speed import search_corpus, search_speed, texts
from retrieval.dense.ranker import VectorRanker
from retrieval.exceptions import RetrieverFailed
from retrieval.models import Chunk, ChunkEmbedding, Collection, Document, Lexeme
from retrieval.reconciliation.checks import check
from retrieval.search.pipeline import search
from retrieval.types import SearchFilters, SearchMethod

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch):
    monkeypatch.setattr(search_corpus, "SAMPLES", 2)
    monkeypatch.setattr(search_speed, "WARM_UP", 1)


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    call_command("benchmark_search", *map(str, arguments), stdout=out, stderr=err)
    return out.getvalue()


def run_json(*arguments):
    return json.loads(run(*arguments, "--json"))


def test_the_json_has_the_documented_form():
    result = run_json("--chunks", 90, "--queries", 3)
    assert result["chunks"] == 90
    assert result["queries"] == 3
    assert {"embed", "lexical", "vector", "ts_rank", "exact_vector", "legs", "fuse", "load", "total"} <= set(
        result["stages"]
    )
    for stage in result["stages"].values():
        assert set(stage) == {"p50_ms", "p95_ms"}
        assert 0 < stage["p50_ms"] <= stage["p95_ms"]
    stages = result["stages"]
    assert result["ratios"]["ts_rank_over_lexical"] == pytest.approx(
        stages["ts_rank"]["p50_ms"] / stages["lexical"]["p50_ms"], rel=0.01, abs=0.002
    )
    assert stages["total"]["p50_ms"] > stages["fuse"]["p50_ms"]
    assert result["recall@50"] == 1.0  # so few vectors are compared one by one
    assert result["build_seconds"] > 0
    assert result["matching_chunks_p50"] > 0
    assert result["bytes"]["retrieval_chunk"] > 90 * 1000
    assert {"chunk_search_vector", "retrieval_chunkembedding"} <= set(result["bytes"])


def test_the_corpus_is_removed_unless_kept():
    before = [model.objects.count() for model in (Collection, Document, Chunk, ChunkEmbedding, Lexeme)]
    run("--chunks", 30, "--queries", 1)
    assert [model.objects.count() for model in (Collection, Document, Chunk, ChunkEmbedding, Lexeme)] == before


def test_a_kept_corpus_is_used_again_while_its_size_is_the_same():
    assert run_json("--chunks", 30, "--queries", 1, "--keep")["build_seconds"] > 0
    ids = set(Chunk.objects.values_list("pk", flat=True))
    assert len(ids) == 30
    assert run_json("--chunks", 30, "--queries", 1, "--keep")["build_seconds"] is None
    assert set(Chunk.objects.values_list("pk", flat=True)) == ids
    assert run_json("--chunks", 25, "--queries", 1, "--keep")["build_seconds"] > 0
    assert Chunk.objects.count() == ChunkEmbedding.objects.count() == 25
    assert check() == []


def test_a_damaged_corpus_is_not_taken_for_whole():
    run("--chunks", 30, "--queries", 1, "--keep")
    ChunkEmbedding.objects.first().delete()
    run("--chunks", 30, "--queries", 1, "--keep")
    assert ChunkEmbedding.objects.count() == 30


def test_other_collections_are_left_alone(collection, ingest):
    ingest(collection, "a.txt", "A zebra is a striped horse.")
    run("--chunks", 30, "--queries", 1)
    assert collection.chunks.count() == 1
    assert check() == []
    assert not Collection.objects.filter(slug=search_corpus.SLUG).exists()


def test_passages_are_found_where_their_text_says_and_questions_find_something():
    run("--chunks", 45, "--queries", 1, "--keep")
    loaded = Collection.objects.get(slug=search_corpus.SLUG)
    assert not loaded.is_public
    assert check() == []  # offsets, statistics, vectors
    question = texts.SyntheticCorpus(45, search_corpus.SEED).questions(1)[0]
    for method in (SearchMethod.LEXICAL, SearchMethod.VECTOR):
        assert search(question, SearchFilters((loaded.pk,)), method=method).hits


def test_beyond_the_exact_bound_the_index_is_timed_and_its_recall_told(monkeypatch):
    monkeypatch.setattr("retrieval.dense.ranker.EXACT_UP_TO", 10)
    monkeypatch.setattr("retrieval.dense.index.LARGEST_EF_SEARCH", 50)
    result = run_json("--chunks", 400, "--queries", 3)
    assert 0.5 < result["recall@50"] <= 1.0


def test_people_get_a_table():
    lines = run("--chunks", 30, "--queries", 1).splitlines()
    assert lines[0].startswith("30 passages (made in ")
    assert lines[1].split() == ["stage", "p50", "ms", "p95", "ms"]
    assert lines[2].split()[0] == "embed"
    assert any(line.startswith("ts_rank_over_lexical") and line.endswith("x") for line in lines)


def test_no_figure_is_given_when_a_leg_did_not_answer(monkeypatch):
    def fail(self, depth):
        raise RetrieverFailed("The vectors are on fire.")

    monkeypatch.setattr(VectorRanker, "rank", fail)
    with pytest.raises(CommandError, match="on fire"):
        run("--chunks", 30, "--queries", 1)
    assert not Collection.objects.filter(slug=search_corpus.SLUG).exists()


@pytest.mark.parametrize("arguments", [("--chunks", "0"), ("--chunks", "many"), ("--queries", "-1")])
def test_impossible_numbers_are_refused(arguments):
    with pytest.raises(CommandError, match="whole number above 0"):
        run(*arguments)
