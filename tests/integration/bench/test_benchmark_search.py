import io
import json

import pytest
from django.core.management import CommandError, call_command

from bench.speed import search_corpus, search_speed
from retrieval.documents.reconciliation import find_inconsistencies
from retrieval.exceptions import RetrieverFailed
from retrieval.models import Chunk, Collection
from retrieval.search.ranking.vector_ranker import VectorRanker

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


def test_search_is_timed_on_a_corpus_that_is_kept_when_asked_for(collection, ingest):
    ingest(collection, "a.txt", "A zebra is a striped horse.")
    result = run_json("--chunks", 90, "--queries", 3, "--keep")
    assert (result["chunks"], result["queries"]) == (90, 3)
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
    made = Collection.objects.get(slug=search_corpus.SLUG)
    assert made.visibility == "staff"
    assert made.chunks.count() == 90
    assert find_inconsistencies() == []  # offsets, statistics, vectors

    kept = set(made.chunks.values_list("pk", flat=True))
    assert run_json("--chunks", 90, "--queries", 1, "--keep")["build_seconds"] is None
    assert set(made.chunks.values_list("pk", flat=True)) == kept
    # A damaged collection is not used again, and without `--keep` none is left.
    made.chunks.first().delete()
    shown = run("--chunks", 90, "--queries", 1)
    assert shown.startswith("90 passages, 1 questions, each matching ")
    assert "| embed |" in shown
    assert "Ratios: ts rank over lexical" in shown
    assert not Collection.objects.filter(slug=search_corpus.SLUG).exists()
    assert Chunk.objects.get().collection == collection
    assert find_inconsistencies() == []


def write_set(folder, passages, queries):
    folder.mkdir()
    for name, texts in (("corpus", passages), ("queries", queries)):
        lines = [json.dumps({"_id": f"{name}{number}", "text": text}) for number, text in enumerate(texts)]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return folder


def test_search_is_timed_on_the_passages_and_queries_of_a_set(tmp_path, monkeypatch):
    searched = []
    whole = search_speed._search
    monkeypatch.setattr(
        search_speed, "_search", lambda question, *rest: searched.append(question) or whole(question, *rest)
    )
    folder = write_set(
        tmp_path / "horses",
        [f"Horse number {number} is called Bella and is {number} years old." for number in range(40)],
        ["How old is Bella?", "Which horse is called Bella?", "Is there a zebra?"],
    )
    result = run_json("--real", folder, "--chunks", 30, "--queries", 2, "--keep")
    assert (result["chunks"], result["queries"]) == (30, 2)
    assert searched == ["How old is Bella?", "Which horse is called Bella?", "Is there a zebra?"]
    contents = Collection.objects.get().chunks.values_list("content", flat=True)
    assert set(contents) == {
        f"Horse number {number} is called Bella and is {number} years old." for number in range(30)
    }
    run("--real", folder, "--chunks", 30, "--queries", 2)
    assert not Collection.objects.exists()
    with pytest.raises(CommandError, match=r"has 40 documents, fewer than 50\."):
        run("--real", folder, "--chunks", 50, "--queries", 2)
    with pytest.raises(CommandError, match=r"has 3 queries, fewer than the 5 of a run\."):
        run("--real", folder, "--chunks", 30, "--queries", 4)


def test_no_figure_is_given_when_a_leg_did_not_answer(monkeypatch):
    def fail(self, depth):
        raise RetrieverFailed("The vectors are on fire.")

    monkeypatch.setattr(VectorRanker, "rank", fail)
    with pytest.raises(CommandError, match="on fire"):
        run("--chunks", 30, "--queries", 1)
    assert not Collection.objects.filter(slug=search_corpus.SLUG).exists()
