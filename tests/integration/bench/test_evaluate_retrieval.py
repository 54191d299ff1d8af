import io
import json

import pytest
from django.core.management import CommandError, call_command

from bench import bulk, ranking
from bench.beir import TestSet
from bench.corpora import choose_configuration
from retrieval.documents.reconciliation import find_inconsistencies
from retrieval.exceptions import RerankFailed, RetrieverFailed
from retrieval.index import embedder_choice
from retrieval.index.chunk_writer import recompute_term_weights
from retrieval.models import Chunk, ChunkEmbedding, Collection, CollectionStatistics, Document
from retrieval.protocols import Reranker
from retrieval.search.pipeline import search
from retrieval.types import SearchFilters, SearchMethod

pytestmark = pytest.mark.django_db(transaction=True)

CORPUS = {
    "holidays": ("Holidays", "Every employee has 25 days of paid holiday a year."),
    "parking": ("Parking", "The car park behind the building closes at eight in the evening."),
    "pay": ("Pay", "Salaries are transferred on the 25th of each month."),
    "zebra": ("", "A zebra is a striped horse. The word occurs once in this corpus."),
    "empty": ("", ""),
}
QUERIES = {
    "q1": ("How many days of holiday do I have?", {"holidays": 2, "pay": 0}),
    "q2": ("When does the car park close?", {"parking": 1}),
    "q3": ("zebra", {"zebra": 1, "not in the corpus": 1}),
    "unjudged": ("Nothing is known of this one.", {}),
}


def write_set(folder, corpus=CORPUS, queries=QUERIES):
    folder.mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": pk, "title": title, "text": text}) + "\n" for pk, (title, text) in corpus.items())
    )
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": pk, "text": text}) + "\n" for pk, (text, _) in queries.items())
    )
    judgements = [f"{query}\t{pk}\t{grade}\n" for query, (_, grades) in queries.items() for pk, grade in grades.items()]
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judgements))
    return folder


@pytest.fixture
def folder(tmp_path):
    return write_set(tmp_path / "tiny_set")


def evaluate(*arguments, **options):
    out, err = io.StringIO(), io.StringIO()
    call_command("evaluate_retrieval", *map(str, arguments), stdout=out, stderr=err, **options)
    return out.getvalue()


def evaluate_json(*arguments):
    return json.loads(evaluate(*arguments, "--json"))


def chunk_ids(slug="beir-tiny_set"):
    return sorted(Chunk.objects.filter(collection__slug=slug).values_list("pk", flat=True))


def test_the_json_has_the_documented_form(folder):
    result = evaluate_json(folder)
    assert list(result) == ["sets"]
    (one,) = result["sets"]
    assert list(one) == ["name", "documents", "queries", "methods"]
    assert (one["name"], one["documents"], one["queries"]) == ("tiny_set", 5, 3)
    assert set(one["methods"]) == {*SearchMethod, "default"}
    for name, method in one["methods"].items():
        compared = {"ndcg@10_minus_rrf"} if name != "rrf" else set()
        assert set(method) == {"ndcg@10", "hit@10", "recall@50", "mrr@10", "latency_ms"} | compared
        for metric in ("ndcg@10", "hit@10", "recall@50", "mrr@10"):
            assert set(method[metric]) == {"mean", "low", "high"}
            assert 0 <= method[metric]["low"] <= method[metric]["mean"] <= method[metric]["high"] <= 1
        stages = method["latency_ms"]
        assert all(set(stage) == {"p50", "p95"} and 0 <= stage["p50"] <= stage["p95"] for stage in stages.values())
        retrievers = {"lexical", "vector"} - ({"lexical": {"vector"}, "vector": {"lexical"}}.get(name) or set())
        assert {"classify", "legs", "fuse", "load", "total"} | retrievers <= set(stages)
        assert {"lexical", "vector"} & set(stages) == retrievers
    method = one["methods"]["lexical"]
    # The corpus lacks half of what is relevant to "zebra"; everything else comes first.
    assert method["hit@10"]["mean"] == 1.0
    assert method["mrr@10"]["mean"] == 1.0
    assert method["recall@50"]["mean"] == pytest.approx((1 + 1 + 0.5) / 3, abs=1e-4)
    assert method["ndcg@10"]["mean"] == pytest.approx((1 + 1 + 1 / (1 + 1 / 1.5849625)) / 3, abs=1e-4)


def test_only_what_has_changed_is_loaded_again(folder, monkeypatch):
    evaluate(folder, "--methods", "lexical")
    before = chunk_ids()
    assert len(before) == 4
    evaluate(folder, "--methods", "vector", "--limit", "1")
    assert chunk_ids() == before
    vectors = dict(ChunkEmbedding.objects.values_list("document__source", "vector"))
    embedded = []
    embedder = embedder_choice.get_embedder()
    original = embedder.embed_documents
    monkeypatch.setattr(embedder, "embed_documents", lambda texts: embedded.extend(texts) or original(texts))
    changed = {pk: row for pk, row in CORPUS.items() if pk != "pay"} | {
        "holidays": ("Leave", "None."),
        "new": ("", "!"),
    }
    write_set(folder, changed)
    assert evaluate_json(folder, "--methods", "lexical")["sets"][0]["documents"] == len(changed)
    assert not set(before) & set(chunk_ids())
    assert embedded == ["Leave\nNone.", "!"]
    assert dict(ChunkEmbedding.objects.values_list("document__source", "vector"))["zebra"] == vectors["zebra"]
    collection = Collection.objects.get()
    assert collection.visibility == "staff"
    assert set(Document.objects.values_list("source", "title", "text__text")) == {
        (pk, title, text) for pk, (title, text) in changed.items()
    }
    assert find_inconsistencies() == []  # offsets, statistics, vectors
    # Neither is a damaged one, in which one document is too many and one passage is missing, taken for whole.
    evaluate(folder, "--methods", "lexical")
    Document.objects.create(collection=collection, source="stray.txt", content_hash="0")
    Chunk.objects.filter(document__source="zebra").delete()
    evaluate(folder, "--methods", "lexical")
    assert len(chunk_ids()) == ChunkEmbedding.objects.count() == 4
    assert not Document.objects.filter(source="stray.txt").exists()
    assert find_inconsistencies() == []


def test_an_interrupted_load_leaves_nothing_that_could_be_taken_for_whole(folder, monkeypatch):
    class Killed(BaseException):
        pass

    original = bulk.insert_chunks
    calls = []

    def insert_one_document_only(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise Killed
        return original(*arguments)

    monkeypatch.setattr(bulk, "insert_chunks", insert_one_document_only)
    with pytest.raises(Killed):
        evaluate(folder)
    assert len(calls) == 2
    assert not Chunk.objects.exists()
    assert not Document.objects.exists()
    monkeypatch.setattr(bulk, "insert_chunks", original)
    evaluate(folder, "--methods", "lexical")
    assert len(chunk_ids()) == 4
    assert find_inconsistencies() == []


def test_search_finds_the_same_as_after_ordinary_ingestion(folder, ingest):
    evaluate(folder, "--methods", "lexical")
    loaded = Collection.objects.get(slug="beir-tiny_set")
    ordinary = Collection.objects.create(slug="ordinary", name="Ordinary")
    for pk, (title, text) in CORPUS.items():
        if title:
            ingest(ordinary, f"{pk}.txt", text, title=title)
    write_set(folder, {pk: row for pk, row in CORPUS.items() if row[0]})
    evaluate(folder, "--methods", "lexical", "--chunked")
    chunked = Collection.objects.get(slug="beir-tiny_set-chunked")
    recompute_term_weights(ordinary, largest_drift=0.0)
    assert loaded.pk != chunked.pk
    for method in (SearchMethod.LEXICAL, SearchMethod.VECTOR):
        found = [
            [
                (hit.passage.document_title, hit.passage.content, pytest.approx(hit.score, abs=1e-5))
                for hit in search("When is pay transferred?", SearchFilters((pk,)), method=method).hits
            ]
            for pk in (chunked.pk, ordinary.pk)
        ]
        assert found[0]
        assert found[0] == found[1]


def test_chunked_cuts_documents_and_ranks_them_by_their_best_chunk(tmp_path):
    filler = " ".join(f"Sentence {number} is about nothing in particular at all." for number in range(120))
    corpus = {
        "long": ("Long", f"{filler} The zebra sleeps standing. {filler}"),
        "short": ("Short", "Salaries are transferred monthly."),
    }
    folder = write_set(tmp_path / "long_set", corpus, {"q": ("zebra sleeps standing", {"long": 1})})
    (run,) = evaluate_json(folder, "--methods", "lexical,vector", "--chunked")["sets"]
    collection = Collection.objects.get(slug="beir-long_set-chunked")
    assert collection.chunks.count() > 5
    assert run["documents"] == 2
    assert run["methods"]["vector"]["mrr@10"]["mean"] == 1.0
    assert run["methods"]["lexical"]["ndcg@10"]["mean"] == 1.0
    for chunk in collection.chunks.select_related("document__text"):
        assert chunk.document.text.text[chunk.start : chunk.end] == chunk.content
    result = search("zebra sleeps standing", SearchFilters((collection.pk,)), method=SearchMethod.VECTOR, top_k=50)
    assert len(result.hits) > 5
    assert ranking.ranked_documents(result) == ["long", "short"]


def test_people_get_a_table_for_each_set_and_the_means(folder, tmp_path):
    lines = evaluate(folder, write_set(tmp_path / "second"), "--methods", "lexical,default").splitlines()
    assert lines[0] == "tiny_set: 5 documents, 3 queries"
    assert lines[2].startswith("| method | ndcg@10 | hit@10 | recall@50 | mrr@10 |")
    assert [line.split()[1] for line in lines[4:6]] == ["lexical", "default"]
    assert "second: 5 documents, 3 queries" in lines
    means = lines.index("Means of 2 sets, each counting once")
    assert lines[means + 4] == "| lexical | 0.871 | 1.000 | 0.833 | 1.000 |"


@pytest.mark.parametrize(
    ("name", "description", "asked", "found"),
    [
        ("x", "", "", "english"),
        ("x_nl", "", "", "dutch"),
        ("x_nl", "English", "", "english"),
        ("x_nl", "English", "german", "german"),
    ],
)
def test_the_language_asked_for_counts_more_than_the_sets_own_and_that_more_than_its_name(
    name, description, asked, found
):
    assert choose_configuration(TestSet(name, (), (), description), asked) == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "magic"], "no method 'magic': they are lexical, vector"),
        (["--methods", ","], "no method to run"),
        (["--reranker", "crossencoder"], "no reranker 'crossencoder': it is one of none"),
        (["--limit", "0"], "not a whole number above 0"),
        (["--language", "klingon"], "no language 'klingon'"),
        (["--qrels", "absent.tsv"], "absent.tsv"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_is_loaded(folder, arguments, message):
    with pytest.raises(CommandError, match=message):
        evaluate(folder, *arguments)
    assert not Collection.objects.exists()


def test_a_misspelt_second_folder_and_a_depth_too_small_are_refused_before_the_first_is_loaded(
    folder, tmp_path, settings
):
    with pytest.raises(CommandError, match="absent/corpus.jsonl cannot be read"):
        evaluate(folder, tmp_path / "absent")
    settings.RETRIEVAL_DEPTH = 20
    with pytest.raises(CommandError, match="a depth of at least"):
        evaluate(folder)
    assert not Collection.objects.exists()


class Contrary(Reranker):
    """Likes what was found first least; says what it was asked."""

    asked = []
    prepared = 0

    def prepare(self):
        type(self).prepared += 1

    def score(self, query, chunk_ids, timeout_seconds):
        self.asked.append(query)
        return {pk: float(rank) for rank, pk in enumerate(chunk_ids)}


class FailingReranker(Contrary):
    def score(self, query, chunk_ids, timeout_seconds):
        raise RerankFailed("The model is on fire.")


@pytest.fixture
def backwards(settings, monkeypatch):
    monkeypatch.setattr(Contrary, "asked", [])
    monkeypatch.setattr(Contrary, "prepared", 0)
    settings.RERANKERS = {"backwards": {"BACKEND": f"{__name__}.Contrary"}}
    settings.RETRIEVAL_RERANKER = "none"
    return Contrary


def test_a_reranker_that_is_named_serves_every_method_and_else_the_default_has_its_profiles_own(
    folder, backwards, settings
):
    def methods(*arguments):
        return evaluate_json(folder, "--methods", "lexical,default", *arguments)["sets"][0]["methods"]

    assert all("rerank" in method["latency_ms"] for method in methods("--reranker", "backwards").values())
    # Each query once a method, and the first once more, unmeasured.
    assert len(backwards.asked) == 2 * (3 + 1)
    assert backwards.prepared == 1
    settings.RETRIEVAL_RERANKER = "backwards"
    found = methods()
    assert "rerank" in found["default"]["latency_ms"]
    assert "rerank" not in found["lexical"]["latency_ms"]
    assert "rerank" not in methods("--reranker", "none")["default"]["latency_ms"]


def test_no_figure_is_given_when_a_leg_did_not_answer(folder, monkeypatch):
    from retrieval.search.ranking.vector_ranker import VectorRanker

    def fail(self, depth):
        raise RetrieverFailed("The vectors are on fire.")

    monkeypatch.setattr(VectorRanker, "rank", fail)
    with pytest.raises(CommandError, match=r"not searched with all of zscore: The vectors are on fire"):
        evaluate(folder, "--methods", "zscore")


def test_no_figure_is_given_when_the_reranker_did_not_answer(folder, settings):
    settings.RERANKERS = {"failing": {"BACKEND": f"{__name__}.FailingReranker"}}
    with pytest.raises(CommandError, match=r"not searched with all of lexical: The model is on fire"):
        evaluate(folder, "--methods", "lexical", "--reranker", "failing")


def test_no_figure_is_given_when_the_collection_changed_meanwhile(folder, monkeypatch):
    original = ranking.search

    def disturbed(question, filters, **options):
        CollectionStatistics.objects.update(version=99)
        return original(question, filters, **options)

    monkeypatch.setattr(ranking, "search", disturbed)
    with pytest.raises(CommandError, match="changed while"):
        evaluate(folder, "--methods", "lexical")
