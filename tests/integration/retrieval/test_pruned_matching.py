"""Looking at fewer passages must not change which are found, nor in which order."""

import pytest

from bench.speed import search_corpus
from bench.speed.search_corpus import SEED
from bench.speed.texts import SyntheticCorpus
from core import database
from retrieval.models import Chunk, Document
from retrieval.profile_settings import ProfileSettings
from retrieval.search.ranking import lexical_ranker
from retrieval.search.ranking.lexical_query import build_queries
from retrieval.search.ranking.lexical_ranker import Bm25Ranker
from retrieval.search.ranking.plans import build_plan
from retrieval.types import SearchFilters, SearchMethod
from tests.support.libraries import remembered

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = build_plan(ProfileSettings(method=SearchMethod.LEXICAL))
QUESTIONS = [*SyntheticCorpus(600, SEED).questions(12), "air", "air bank water", "nothing that is there"]


@pytest.fixture
@remembered
def corpus(monkeypatch):
    monkeypatch.setattr(search_corpus, "SAMPLES", 2)
    return search_corpus.load_synthetic_corpus(600, lambda *at: None).collection


def rank(question, filters, depth, first_look):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lexical_ranker, "FIRST_LOOK", first_look)
        return Bm25Ranker(question, filters, PLAN).rank(depth)


def notations(question, filters, depth):
    """Return the conditions that passages were looked for with."""
    asked = []

    def fetch(sql, parameters):
        asked.extend(str(each) for each in parameters if "'" in str(each))
        return database.fetch_rows(sql, parameters)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lexical_ranker, "fetch_rows", fetch)
        rank(question, filters, depth, 1)
    return asked


def test_the_ranking_is_that_of_all_passages_that_match(corpus):
    everything = SearchFilters((corpus.pk,))
    document = Document.objects.filter(collection=corpus).order_by("pk")[3]
    some = SearchFilters((corpus.pk,), documents=(document.pk,))
    for filters, depth in ((everything, 2), (everything, 50), (some, 2)):
        for question in QUESTIONS[::2]:
            assert rank(question, filters, depth, 1) == rank(question, filters, depth, 10**9)


def test_common_words_do_not_keep_passages_from_being_left_out(corpus):
    saved = 0
    for question in QUESTIONS[:12]:
        (query,) = build_queries(question, [corpus.pk])
        for notation in notations(question, SearchFilters((corpus.pk,)), 10):
            if "&" not in notation:
                continue
            pruned = Chunk.objects.extra(where=["search_vector @@ %s::tsquery"], params=[notation]).count()
            matching = Chunk.objects.extra(where=["search_vector @@ %s::tsquery"], params=[query.tsquery]).count()
            assert 10 <= pruned <= matching
            saved += matching - pruned
    assert saved > 200


def test_expanded_words_and_phrases_are_ranked_the_same(corpus):
    filters = SearchFilters((corpus.pk,))
    words = QUESTIONS[0].split()
    misspelt = " ".join([*words[:-1], words[-1][:-3] + words[-1][-2] + words[-1][-3]])
    for question in (misspelt, f'"{words[3]} {words[4]}" {QUESTIONS[1]}', f"{QUESTIONS[2]} -{words[3]}"):
        assert rank(question, filters, 10, 1) == rank(question, filters, 10, 10**9)
