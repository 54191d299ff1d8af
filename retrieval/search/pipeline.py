"""Search: classify a question, run both retrievers, fuse their results, rerank them, and explain the order.

If one retriever fails or is late, only the results of the other are used. If the reranker fails, the fused order stays.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from unicodedata import normalize

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.utils.translation import gettext as _

from core import database
from core.exceptions import RagsiteError
from core.metrics import start_at_zero
from core.read_once import cache_reads_in_block
from core.tracing import annotate_span, span
from retrieval import backends
from retrieval.exceptions import InvalidQuery, SearchUnavailable
from retrieval.index.active_embedder import begin_encoding_query, has_passages_without_vectors
from retrieval.index.closeness import find_current_calibration
from retrieval.index.term_statistics import prefetch_terms
from retrieval.metrics import RERANK_FAILURES, SEARCH_SECONDS
from retrieval.models import Chunk
from retrieval.profile_settings import ProfileSettings
from retrieval.rights.search_filters import filter_by_document
from retrieval.search.passage_rows import (
    find_chunks_with_curator_question,
    find_chunks_with_section_number,
    load_metadata,
    load_passages,
)
from retrieval.search.profiles.profiles import NamedProfile, active_profile, apply_hybrid_setting
from retrieval.search.ranking.fusion import apply_boosts, fuse_rankings, merge_searches
from retrieval.search.ranking.new_subjects import is_new_subject
from retrieval.search.ranking.plans import SearchPlan, build_plan
from retrieval.search.ranking.preferences import MatchStrengthMeasure, put_own_language_first
from retrieval.search.ranking.reranking import rerank_in_time
from retrieval.search.ranking.retrievers import (
    CandidateData,
    RetrieverResult,
    load_candidate_data,
    run_retrievers,
)
from retrieval.search.trace import Hit, RerankTrace, RetrieverTrace, SearchResult, SearchTrace
from retrieval.search.understanding.classification import classify_question
from retrieval.search.understanding.corrected_spelling import correct_spelling
from retrieval.search.understanding.joined_questions import choose_search_weights, join_with_earlier_questions
from retrieval.search.understanding.named_subject import add_identifier_from_history
from retrieval.search.understanding.named_things import (
    find_alphanumeric_codes,
    find_named_collections,
    find_named_section,
)
from retrieval.search.understanding.syntax import parse_question
from retrieval.text.language import identify_language
from retrieval.text.terms import write_plain_hyphens
from retrieval.types import (
    Candidate,
    MetadataBoost,
    QueryClassification,
    Ranking,
    Reformulation,
    RetrieverWeights,
    SearchFilters,
    SearchMethod,
    TriedQuestions,
    Turn,
)

logger = logging.getLogger(__name__)
start_at_zero(RERANK_FAILURES, settings.RERANKERS)


# These boosts are added to a passage's score, in standard deviations of all scores. NAMED_COLLECTION: the question
# names the passage's collection. SAME_COLLECTION, SAME_DOCUMENT: the previous answer cites the same one.
NAMED_COLLECTION, SAME_COLLECTION, SAME_DOCUMENT = 3.0, 0.25, 1.0
# Boost, in standard deviations, of a passage that contains a code from the question, such as a part number.
NAMED_CODE = 4.0
# Boost of a passage for which a curator entered this question. It outweighs all other scores.
GIVEN = MetadataBoost("question", "given", 10.0)


class Stopwatch:
    def __init__(self) -> None:
        self.started = self._last = time.perf_counter()
        self.milliseconds: dict[str, float] = {}

    def record_stage(self, stage: str) -> None:
        now = time.perf_counter()
        self.milliseconds[stage] = round((now - self._last) * 1000, 3)
        self._last = now

    def record_total(self) -> None:
        self.milliseconds["total"] = round((time.perf_counter() - self.started) * 1000, 3)


@dataclass(frozen=True, slots=True)
class _QueryResults:
    """The retrievers' results for ``query``, one form of the question, and the weight of this form."""

    query: str
    weight: float
    rankings: list[Ranking]
    known: CandidateData


@dataclass(frozen=True, slots=True)
class _Question:
    """A question in the forms in which it is searched.

    ``asked`` is the question as typed, ``text`` the corrected question. ``joined`` is earlier questions followed by
    ``text``, or empty. ``reformulation`` is None if the caller of `search` chose a method, because nothing is corrected
    then.
    """

    asked: str
    text: str
    joined: str
    history: Sequence[Turn]
    reformulation: Reformulation | None
    classification: QueryClassification
    named_collections: tuple[str, ...] = ()
    section: tuple[str, str] | None = None
    codes: frozenset[str] = frozenset()

    @property
    def texts(self) -> list[str]:
        return [self.text, self.joined] if self.joined else [self.text]

    def drop_history(self) -> _Question:
        return replace(self, joined="", history=())


@dataclass(frozen=True, slots=True)
class _QuestionResults:
    """The results for one question.

    ``lists`` has the candidates of each search, best first. ``tried`` is the argument of `search`.
    """

    question: _Question
    asked: Sequence[Sequence[RetrieverResult]]
    searches: Sequence[_QueryResults]
    lists: Sequence[list[Candidate]]
    strengths: MatchStrengthMeasure | None
    tried: TriedQuestions

    @property
    def candidate_data_of_queries(self) -> list[CandidateData]:
        return [each.known for each in self.searches]

    @property
    def matched_terms(self) -> dict[int, tuple[str, ...]]:
        """The question's terms that each chunk contains, by chunk id, from the first search that found it."""
        return {
            pk: found for each in reversed(self.candidate_data_of_queries) for pk, found in each.matched_terms.items()
        }


@span("search")
@cache_reads_in_block()
def search(
    question: str,
    filters: SearchFilters,
    *,
    method: SearchMethod | None = None,
    top_k: int | None = None,
    profile: NamedProfile | ProfileSettings | None = None,
    reranker: str | None = None,
    history: Sequence[Turn] = (),
    tried: TriedQuestions | None = None,
) -> SearchResult:
    """Return the passages that answer ``question`` best, with an explanation of their order.

    - ``filters``: only passages that pass them are searched.
    - ``method``: a method to combine the retrievers. It is used as in the scientific publication about it, without
      corrections or history.
    - ``profile``: used instead of the site's active search profile.
    - ``reranker``: used instead of the profile's reranker.
    - ``history``: earlier turns of the conversation, oldest first.
    - ``tried``: questions by chunk id. This search treats them as if curators had stored them with these passages.

    Every passage contains the quoted phrases, and none of the words after a minus. The result may be empty.

    Raises: InvalidQuery for an empty question, a question that only excludes words, or a number out of range;
    SearchUnavailable if both retrievers fail.
    """
    watch = Stopwatch()
    used = active_profile() if profile is None else profile
    if isinstance(used, ProfileSettings):
        used = NamedProfile("", used)
    tuned = _choose_settings(used.settings, method, reranker)
    understood = _prepare_question(question, filters, tuned, history, watch)
    plan = apply_hybrid_setting(
        build_plan(
            tuned,
            understood.classification.query_class,
            top_k=top_k,
            retriever_timeout_seconds=settings.RETRIEVAL_LEG_TIMEOUT_SECONDS,
        )
    )
    watch.record_stage("classify")
    found = _retrieve_and_fuse(understood, filters, plan, watch, tried or {})
    candidates, rerank_trace = _rank_question_results(found, plan, watch)
    return _build_result(used.name, found, plan, candidates, rerank_trace, filters, watch)


def _choose_settings(profile: ProfileSettings, method: SearchMethod | None, reranker: str | None) -> ProfileSettings:
    tuned = _use_embedder_weights(profile) if method is None else profile.use_published_values(method)
    return tuned if reranker is None else replace(tuned, reranker=reranker)


def _prepare_question(
    asked: str, filters: SearchFilters, tuned: ProfileSettings, history: Sequence[Turn], watch: Stopwatch
) -> _Question:
    text = " ".join(write_plain_hyphens(normalize("NFC", asked)).replace("\x00", " ").split())
    if not text:
        raise InvalidQuery(_("The question is empty."))
    reformulation, reformulator = None, backends.get_reformulator()
    joined_with: Sequence[Turn] = ()
    if tuned.reformulate:
        reformulation = Reformulation(text, changed=False, reason="", by="rules")
        if reformulator is not None:
            reformulation = reformulator.reformulate(text, history)
        if reformulator is None or reformulation.notice:
            named = add_identifier_from_history(reformulation.query, history)
            if named == reformulation.query:
                joined_with = history
            else:
                reason = _("the code of an earlier question")
                reformulation = replace(reformulation, query=named, changed=True, completed=True, reason=reason)
        text = reformulation.query
    # Vectors are computed in the background during the database queries.
    if tuned.method is not SearchMethod.LEXICAL:
        for searched in filter(None, (parse_question(text).text, join_with_earlier_questions(text, joined_with))):
            begin_encoding_query(searched)
    try:
        prefetch_terms([*filter(None, (text, join_with_earlier_questions(text, joined_with)))], filters.collections)
    except DatabaseError as error:
        # The keyword retriever repeats this query, and reports a failure.
        logger.warning("The words of a question could not be looked up beforehand: %s", error)
    if reformulation is None:
        return _Question(asked, text, "", (), None, classify_question(text))
    if tuned.fuzzy:
        reformulation = correct_spelling(reformulation, filters)
    text = reformulation.query
    watch.record_stage("reformulate")
    section = find_named_section(text)
    return _Question(
        asked=asked,
        text=text,
        joined=join_with_earlier_questions(text, joined_with),
        history=joined_with,
        reformulation=reformulation,
        classification=classify_question(text),
        named_collections=find_named_collections(text, filters.collections) if len(filters.collections) > 1 else (),
        section=section,
        codes=find_alphanumeric_codes(text) - {section and section[1]},
    )


def _retrieve_and_fuse(
    question: _Question, filters: SearchFilters, plan: SearchPlan, watch: Stopwatch, tried: TriedQuestions
) -> _QuestionResults:
    """Return the candidates for the question, and for the question together with earlier questions.

    Earlier questions are ignored if ``question.joined`` is empty or the question begins a new subject. ``tried`` is the
    argument of `search`. Raises: SearchUnavailable.
    """
    asked = run_retrievers(question.texts, filters, plan)
    watch.record_stage("legs")
    if tried:
        # Chunks in ``tried`` must pass the filters too.
        passing = filter_by_document(Chunk.objects.filter(pk__in=tried, collection__in=filters.collections), filters)
        tried = {pk: tried[pk] for pk in passing.order_by().values_list("pk", flat=True)}
    searches = _collect_query_results(question.texts, asked, load_candidate_data(asked, plan, tried))
    watch.record_stage("scores")
    lists = _fuse_rankings_of_queries(searches, plan, tried)
    strengths = (
        _build_match_strength_measure(question.text, searches[0], lists) if question.reformulation is not None else None
    )
    if len(lists) > 1 and strengths and is_new_subject(question.text, lists[0], lists[1], strengths):
        question, searches = question.drop_history(), [replace(searches[0], weight=1.0)]
        lists = _fuse_rankings_of_queries(searches, plan, tried)
    return _QuestionResults(question, asked, searches, lists, strengths, tried)


def _rank_question_results(
    found: _QuestionResults, plan: SearchPlan, watch: Stopwatch
) -> tuple[tuple[Candidate, ...], RerankTrace | None]:
    question, terms = found.question, found.matched_terms
    named_codes: dict[int, AbstractSet[str]] = {pk: question.codes.intersection(words) for pk, words in terms.items()}
    if question.section is not None:
        ids = {chunk.chunk_id for each in found.searches for ranking in each.rankings for chunk in ranking.chunks}
        for pk in find_chunks_with_section_number(sorted(ids), *question.section):
            named_codes[pk] = named_codes.get(pk, frozenset()) | {question.section[1]}
    places: list[MetadataBoost] = []
    given: AbstractSet[int] = frozenset()
    if question.reformulation is not None:
        before = question.history[-1] if question.history and not question.named_collections else None
        places = _build_location_boosts(question.named_collections, before)
        given = find_chunks_with_curator_question(
            question.text, {**found.candidate_data_of_queries[0].given_questions, **found.tried}
        )
    ordered, rerank_trace = _rank_candidates(found.searches, found.lists, plan, places, named_codes, given, watch)
    if found.strengths is not None:
        ordered = put_own_language_first(ordered, found.strengths)
    return _rank_or_drop_candidates(ordered, plan, found.candidate_data_of_queries, terms), rerank_trace


def _build_result(
    profile: str,
    found: _QuestionResults,
    plan: SearchPlan,
    candidates: tuple[Candidate, ...],
    rerank_trace: RerankTrace | None,
    filters: SearchFilters,
    watch: Stopwatch,
) -> SearchResult:
    hits = _load_hits(candidates)
    watch.record_stage("load")
    retrievers = tuple(map(_merge_traces, zip(*found.asked, strict=True)))
    for retriever in retrievers:
        watch.milliseconds[retriever.retriever.value] = retriever.milliseconds
    watch.record_total()
    question, rankings = found.question, found.searches[0].rankings
    trace = SearchTrace(
        question=question.asked,
        query=question.text,
        query_class=question.classification.query_class,
        rule=question.classification.rule,
        search_method=plan.method.value if len(rankings) > 1 else rankings[0].retriever.value,
        profile=profile,
        weights=plan.weights,
        depth=plan.depth,
        top_k=plan.top_k,
        rrf_k=plan.settings.rrf_k,
        score_threshold=plan.settings.score_threshold,
        retrievers=retrievers,
        rerank=rerank_trace,
        reformulation=question.reformulation,
        candidates=candidates,
        timings_ms=watch.milliseconds,
        is_partly_encoded=plan.weights.vector > 0 and has_passages_without_vectors(filters.collections),
        joined_query=question.joined,
        named_collections=question.named_collections,
    )
    annotate_span(method=trace.search_method, profile=trace.profile, query_class=str(trace.query_class), hits=len(hits))
    SEARCH_SECONDS.labels(method=trace.search_method).observe(watch.milliseconds["total"] / 1000)
    return SearchResult(hits, trace)


def _use_embedder_weights(tuned: ProfileSettings) -> ProfileSettings:
    if tuned.weights is not None or tuned.method is not SearchMethod.ZSCORE:
        return tuned
    try:
        fitted = find_current_calibration()
    except (RagsiteError, ImproperlyConfigured):
        return tuned  # The vector retriever meets the same error and reports it, so it is ignored here.
    share = fitted.vector_weight if fitted is not None else None
    return tuned if share is None else replace(tuned, weights=RetrieverWeights(share, 1 - share))


def _build_location_boosts(named_collections: Sequence[str], previous_turn: Turn | None) -> list[MetadataBoost]:
    boosts = [MetadataBoost("collection", slug, NAMED_COLLECTION) for slug in named_collections]
    if previous_turn is not None:
        boosts += [MetadataBoost("collection", slug, SAME_COLLECTION) for slug in previous_turn.collections]
        boosts += [MetadataBoost("document", document, SAME_DOCUMENT) for document in previous_turn.documents]
    return boosts


def _collect_query_results(
    texts: Sequence[str], asked: Sequence[Sequence[RetrieverResult]], known: Sequence[CandidateData]
) -> list[_QueryResults]:
    rankings = [[result.ranking for result in results if result.ranking is not None] for results in asked]
    weights = choose_search_weights(texts[0])
    answered = [
        _QueryResults(text, weight, found, each)
        for text, weight, found, each in zip(texts, weights, rankings, known, strict=False)
        if found
    ]
    if not answered:
        if any(result.lost_node for results in asked for result in results):
            raise SearchUnavailable(database.get_outage_message())
        raise SearchUnavailable(_("The search cannot answer at the moment. Please try again in a minute."))
    return answered if len(answered) > 1 else [replace(answered[0], weight=1.0)]


def _fuse_rankings_of_queries(
    searches: Sequence[_QueryResults], plan: SearchPlan, others: Iterable[int]
) -> list[list[Candidate]]:
    with span("search.fusion"):
        ids = {chunk.chunk_id for each in searches for ranking in each.rankings for chunk in ranking.chunks}
        ids.update(others)
        return [
            fuse_rankings(
                plan, each.rankings, each.known.scores, ids, _find_largest_word_share(each.known.word_shares, ids)
            )
            for each in searches
        ]


def _find_largest_word_share(shares: Mapping[int, float], chunk_ids: AbstractSet[int]) -> float:
    return max((share for pk, share in shares.items() if pk in chunk_ids), default=1.0)


def _build_match_strength_measure(
    question: str, search: _QueryResults, lists: Sequence[Sequence[Candidate]]
) -> MatchStrengthMeasure | None:
    calibration = find_current_calibration()
    if calibration is None or not lists[0]:
        return None
    known = search.known
    return MatchStrengthMeasure(calibration, identify_language(question), known.word_shares, known.languages)


def _rank_candidates(
    searches: Sequence[_QueryResults],
    lists: Sequence[list[Candidate]],
    plan: SearchPlan,
    place_boosts: Sequence[MetadataBoost],
    named_codes: Mapping[int, AbstractSet[str]],
    same_question_chunks: AbstractSet[int],
    watch: Stopwatch,
) -> tuple[list[Candidate], RerankTrace | None]:
    tuned = plan.settings
    with span("search.fusion"):
        fused = lists[0]
        if len(lists) > 1:
            fused = merge_searches(
                [(each.query, each.weight, found) for each, found in zip(searches, lists, strict=True)]
            )
        # Only boosts need the documents' metadata, which takes a database query.
        boosts = [*tuned.metadata_boosts, *place_boosts]
        stored = load_metadata([each.chunk_id for each in fused]) if boosts else {}
        boosts += [MetadataBoost("code", code, NAMED_CODE) for code in sorted(set().union(*named_codes.values()))]
        boosts += [GIVEN] if same_question_chunks else []
        if boosts:
            ids = {each.chunk_id for each in fused}
            metadata = {pk: {**stored.get(pk, {}), "code": sorted(named_codes.get(pk, ()))} for pk in ids}
            for pk in same_question_chunks & ids:
                metadata[pk][GIVEN.key] = GIVEN.value
            fused = apply_boosts(fused, boosts, metadata)
    watch.record_stage("fuse")
    rerank_trace = None
    if tuned.is_reranked and fused:
        wordings = {parse_question(each.query).text: each.weight for each in searches}
        with span("search.rerank", reranker=tuned.reranker):
            fused, rerank_trace = rerank_in_time(wordings, fused, tuned)
            annotate_span(status=rerank_trace.status.value)
        watch.record_stage("rerank")
    return fused, rerank_trace


def _merge_traces(results: Sequence[RetrieverResult]) -> RetrieverTrace:
    traces = [result.trace for result in results]
    shown = next((trace for trace in traces if trace.status.is_failure), traces[0])
    return replace(
        shown,
        milliseconds=max(trace.milliseconds for trace in traces),
        error=next((trace.error for trace in traces if trace.error), ""),
        expansions={typed: meant for trace in reversed(traces) for typed, meant in trace.expansions.items()},
    )


def _load_hits(candidates: Sequence[Candidate]) -> tuple[Hit, ...]:
    kept = [candidate for candidate in candidates if candidate.rank is not None]
    passages = load_passages([candidate.chunk_id for candidate in kept])
    present = [candidate for candidate in kept if candidate.chunk_id in passages]
    return tuple(Hit(rank, passages[each.chunk_id], each) for rank, each in enumerate(present, start=1))


def _rank_or_drop_candidates(
    fused: Sequence[Candidate], plan: SearchPlan, known: Sequence[CandidateData], terms: Mapping[int, tuple[str, ...]]
) -> tuple[Candidate, ...]:
    threshold = plan.settings.score_threshold
    candidates: list[Candidate] = []
    kept = 0
    for candidate in fused:
        dropped = candidate.dropped
        if not dropped and threshold is not None and candidate.score < threshold:
            dropped = f"score below the threshold of {threshold:g}"
        if not dropped and kept >= plan.top_k:
            dropped = f"not among the first {plan.top_k}"
        kept += not dropped
        shares = [each.word_shares.get(candidate.chunk_id) for each in known]
        candidates.append(
            replace(
                candidate,
                rank=None if dropped else kept,
                dropped=dropped,
                matched_terms=terms.get(candidate.chunk_id, ()),
                word_share=max(filter(None, shares), default=None if None in shares else 0.0),
            )
        )
    return tuple(candidates)
