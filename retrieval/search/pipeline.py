"""Search, from question to ranked passages: classify, plan, ask both retrievers at once, fuse, rerank, explain.

If a retriever fails or misses its deadline, the other one answers; if the reranker does, the fused order is kept. The
trace, the log and a metric say so.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from unicodedata import normalize

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.utils.translation import gettext as _

from core import database, deadline
from core.database import give_connections_back
from core.exceptions import RagsiteError
from core.metrics import begin_at_zero
from core.tracing import annotate, span
from retrieval import backends
from retrieval.exceptions import InvalidQuery, RerankFailed, SearchBusy, SearchUnavailable
from retrieval.index.active_embedder import lags
from retrieval.index.closeness import current_calibration
from retrieval.index.term_statistics import (
    by_configuration,
    collection_states,
    frequencies_in,
    learn,
    lexemes_of,
    passages_in,
    read_once,
)
from retrieval.metrics import REFUSED_SEARCHES, RERANK_FAILURES, SEARCH_SECONDS
from retrieval.profile_settings import ProfileSettings
from retrieval.search.passage_rows import find_given, find_numbered, load_metadata, load_passages
from retrieval.search.profiles.profiles import NamedProfile, active_profile, dense_only_unless_hybrid
from retrieval.search.ranking.fusion import add_searches, boost, fuse, rerank
from retrieval.search.ranking.plans import SearchPlan, plan_for
from retrieval.search.ranking.preferences import CONJUNCTIONS, Strengths, is_new_subject, put_own_language_first
from retrieval.search.ranking.retrievers import (
    DEADLINE_GRACE_SECONDS,
    Known,
    RetrieverResult,
    look_up,
    run_retrievers,
    threads,
)
from retrieval.search.trace import Hit, RerankTrace, RetrieverTrace, SearchResult, SearchTrace, StageStatus
from retrieval.search.understanding.classification import classify
from retrieval.search.understanding.spelling import correct
from retrieval.search.understanding.syntax import parse
from retrieval.search.understanding.vocabulary import CollectionVocabulary
from retrieval.text.language import identify_language
from retrieval.text.terms import SYMBOL_TERM, expand_identifiers
from retrieval.types import (
    Candidate,
    MetadataBoost,
    Ranking,
    Reformulation,
    RetrieverWeights,
    SearchFilters,
    SearchMethod,
    Turn,
)

logger = logging.getLogger(__name__)
begin_at_zero(RERANK_FAILURES, settings.RERANKERS)

# The reranker's part of a search, held to its time budget; when it fails, the fused order stands, announced.


def reranked(
    queries: Mapping[str, float], fused: list[Candidate], settings: ProfileSettings
) -> tuple[list[Candidate], RerankTrace]:
    """The reranked candidates; unchanged, with the reason, if the reranker fails or is late.

    ``queries`` are the search texts with their weights, which sum to 1: a candidate's judgement is the weighted sum.
    """
    started = time.perf_counter()
    name, depth = settings.reranker, settings.rerank_depth
    head = [candidate.chunk_id for candidate in fused[:depth]]

    def trace(status: StageStatus, judged: int = 0, error: str = "") -> RerankTrace:
        milliseconds = round((time.perf_counter() - started) * 1000, 3)
        return RerankTrace(name, status, judged, settings.rerank_weight, depth, milliseconds, error)

    try:
        seconds = deadline.seconds_left(settings.rerank_timeout_seconds)
        judging = deadline.Stage(threads, partial(_score_with_reranker, queries, head, name, seconds))
        judged = judging.result(seconds + DEADLINE_GRACE_SECONDS)
        if not judged:
            raise RerankFailed("It judged none of the candidates.")
        return rerank(fused, settings, judged), trace(StageStatus.OK, len(judged))
    except TimeoutError:
        failed = trace(StageStatus.LATE, error=f"No answer within {seconds:g} s.")
    except (RerankFailed, ImproperlyConfigured) as error:
        failed = trace(StageStatus.FAILED, error=str(error))
    except Exception as error:
        # The fused order is a good answer: nothing that a reranker raises may take it away, and all of it is announced.
        logger.exception("The reranker %s failed unexpectedly.", name)
        failed = trace(StageStatus.FAILED, error=f"{type(error).__name__}: {error}")
    RERANK_FAILURES.labels(reranker=name).inc()
    logger.warning("The reranker %s did not answer, the fused order stands: %s", name, failed.error)
    return fused, failed


def _score_with_reranker(
    queries: Mapping[str, float], chunk_ids: Sequence[int], reranker: str, seconds: float
) -> dict[int, float]:
    ends_at = time.monotonic() + seconds
    try:
        judged = [
            (weight, backends.reranker(reranker).score(query, chunk_ids, max(0.0, ends_at - time.monotonic())))
            for query, weight in queries.items()
        ]
        in_all = set(chunk_ids).intersection(*(scores for _, scores in judged))
        return {pk: sum(weight * scores[pk] for weight, scores in judged) for pk in in_all}
    finally:
        give_connections_back()


# The spelling of a question, put right by the words of what is searched.


def spelt(reformulation: Reformulation, filters: SearchFilters) -> Reformulation:
    """The turn with certain misspellings corrected, by the words of documents that these filters let through."""
    try:
        correction = correct(reformulation.query, CollectionVocabulary(filters.collections, filters.readers))
    except DatabaseError as error:
        # Whatever keeps the words from being read is told by keyword search, which reads the same tables.
        logger.warning("The spelling of a question was not checked: %s", error)
        return reformulation
    if correction is None:
        return reformulation
    spelling = ", ".join(f"{typed} → {meant}" for typed, meant in correction.replaced)
    reason = "; ".join(filter(None, (reformulation.reason, f"spelling: {spelling}")))
    return replace(reformulation, query=correction.question, changed=True, reason=reason, corrected=True)


# Over the API and from pages, by one process: each takes two of the retrievers' threads, and answers need the others.
SEARCHES_AT_ONCE, SEARCH_WAIT_SECONDS = 4, 1.0
_places = threading.BoundedSemaphore(SEARCHES_AT_ONCE)

_WORDS = re.compile(r"\w+")
# Codes are versions and words of letters and digits, except ordinals, decades and measures (19th, 1970s, 500mg), and
# symbols such as arrows and mathematical signs.
_CODE = re.compile(
    rf"(?!\d+[^\W\d_]{{1,3}}$|{SYMBOL_TERM}(?:2[0-2])?..$)(?=\w*[^\W\d_])(?=\w*\d)\w{{3,}}|\d+(?:\.\d+){{2,}}"
)
_SECTION = re.compile(
    r"(\b(?:section|clause|article|paragraph|chapter|step|sectie|paragraaf|artikel|hoofdstuk|stap|lid)|§)"
    r" ?(\d{1,3}(?:\.\d{1,3}){0,4})\b",
    re.I,
)
# What passages of a collection gain that the question names, and passages of a collection and of a document that the
# answer before it cites; in standard deviations of the fused scores.
NAMED_COLLECTION, SAME_COLLECTION, SAME_DOCUMENT = 3.0, 0.25, 1.0
# A name of one word is rare if at most this share of the passages in the other collections contain it.
RARE_SHARE = 0.01

# Of a question alone, and joined with those before it: measured in docs/adr/0045-follow-ups-are-searched-twice.md.
SEARCH_WEIGHTS = (0.7, 0.3)
# A question of so few words seldom stands alone, nor does a longer one that begins with "and".
FEW_WORDS, FEW_WORDS_AFTER_AND, SEARCH_WEIGHTS_OF_FEW_WORDS = 3, 5, (0.4, 0.6)
# What passages gain that hold a code of the question (a part number, an error), in standard deviations.
NAMED_CODE = 4.0
# What a passage gains to which a curator gave the question: more than any ranking can make up for.
GIVEN = MetadataBoost("question", "given", 10.0)
# Of the earlier questions that a question is joined with.
MOST_JOINED, LONGEST_JOINED_CHARACTERS = 2, 600


class Stopwatch:
    """Milliseconds of each named stage, in the order in which they ended."""

    def __init__(self) -> None:
        self.started = self._last = time.perf_counter()
        self.milliseconds: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.milliseconds[stage] = round((now - self._last) * 1000, 3)
        self._last = now

    def total(self) -> None:
        self.milliseconds["total"] = round((time.perf_counter() - self.started) * 1000, 3)


@contextmanager
def place_to_search() -> Iterator[None]:
    """A place to search for a request that is answered at once. Raises: SearchBusy if none becomes free in time."""
    # Those who search need the connections of those who wait.
    database.give_connections_back()
    if not _places.acquire(timeout=SEARCH_WAIT_SECONDS):
        REFUSED_SEARCHES.inc()
        raise SearchBusy(_("Too many searches are running. Please try again in a few seconds."))
    try:
        yield
    finally:
        _places.release()


@dataclass(frozen=True, slots=True)
class _Search:
    """One text searched for a question, with its share in the ranking and the retrievers' results."""

    query: str
    weight: float
    rankings: list[Ranking]
    known: Known


@span("search")
@read_once()
def search(
    question: str,
    filters: SearchFilters,
    *,
    method: SearchMethod | None = None,
    top_k: int | None = None,
    profile: NamedProfile | ProfileSettings | None = None,
    reranker: str | None = None,
    history: Sequence[Turn] = (),
) -> SearchResult:
    """The passages that answer ``question`` best, among those that ``filters`` let through, with the explanation.

    If the profile says so, certain misspellings are corrected, and ``history``, the conversation's earlier turns,
    oldest first, is used: a language model completes the question from it; without a model, the question is searched
    both alone and joined with the questions before it. A named ``method`` is searched as published, without both.
    ``profile`` replaces the published one, and ``reranker`` the profile's reranker. While RETRIEVAL_HYBRID_ENABLED is
    false, only vectors rank, whatever is asked for; the trace names the method used. A quoted phrase must occur in
    every passage returned, a word after a minus in none (see ``syntax``). The result is empty when nothing
    matches. Raises: InvalidQuery for an empty question, one of exclusions only, or an impossible number,
    SearchUnavailable when no retriever could answer.
    """
    watch = Stopwatch()
    searched = " ".join(normalize("NFC", question).replace("\x00", " ").split())
    if not searched:
        raise InvalidQuery(_("The question is empty."))
    used = active_profile() if profile is None else profile
    if isinstance(used, ProfileSettings):
        used = NamedProfile("", used)
    tuned = used.settings if method is None else used.settings.as_published(method)
    if method is None:
        tuned = _use_embedder_weights(tuned)
    if reranker is not None:
        tuned = replace(tuned, reranker=reranker)
    reformulation, reformulator = None, backends.reformulator()
    joined_with: Sequence[Turn] = ()
    if tuned.reformulate:
        reformulation = Reformulation(searched, changed=False, reason="", by="rules")
        if reformulator is not None:
            reformulation = reformulator.reformulate(searched, history)
        searched = reformulation.query
        if reformulator is None or reformulation.notice:
            joined_with = history
    try:
        learn([*filter(None, (searched, join_questions(searched, joined_with)))], filters.collections)
    except DatabaseError as error:
        # Each part that needs the words asks for them itself then, and tells when it gets no answer.
        logger.warning("The words of a question could not be looked up beforehand: %s", error)
    if reformulation is not None:
        if tuned.fuzzy:
            reformulation = spelt(reformulation, filters)
        searched = reformulation.query
        watch.lap("reformulate")
    joined = join_questions(searched, joined_with)
    named: tuple[str, ...] = ()
    if reformulation is not None and len(filters.collections) > 1:
        named = find_named_collections(searched, filters.collections)
    classification = classify(searched)
    plan = plan_for(
        tuned,
        classification.query_class,
        top_k=top_k,
        retriever_timeout_seconds=settings.RETRIEVAL_LEG_TIMEOUT_SECONDS,
    )
    plan = dense_only_unless_hybrid(plan)
    watch.lap("classify")

    texts = [searched, joined] if joined else [searched]
    asked = run_retrievers(texts, filters, plan)
    watch.lap("legs")
    known = look_up(asked, plan)
    answered = _answered(texts, asked, known)
    watch.lap("scores")
    lists = _fuse_each(answered, plan)
    strengths = _make_strengths(searched, answered[0], lists) if reformulation is not None else None
    if len(lists) > 1 and strengths and is_new_subject(searched, lists[0], lists[1], strengths):
        answered, known, joined, joined_with = [replace(answered[0], weight=1.0)], known[:1], "", ()
        lists = _fuse_each(answered, plan)
    terms = {pk: found for each in reversed(known) for pk, found in each.matched_terms.items()}
    section = find_section(searched) if reformulation is not None else None
    codes = find_codes(searched) - {section and section[1]} if reformulation is not None else frozenset()
    named_codes = {pk: codes.intersection(held) for pk, held in terms.items()}
    if section is not None:
        found = {chunk.chunk_id for each in answered for ranking in each.rankings for chunk in ranking.chunks}
        numbered = find_numbered(sorted(found), *section)
        named_codes |= {pk: named_codes.get(pk, frozenset()) | {section[1]} for pk in numbered}
    given = find_given(searched, terms) if reformulation is not None else frozenset()
    before = joined_with[-1] if joined_with and not named else None
    boosts = _place_boosts(named, before) if reformulation is not None else []
    ordered, rerank_trace = _rank_candidates(answered, lists, plan, boosts, named_codes, given, watch)
    if strengths is not None:
        ordered = put_own_language_first(ordered, strengths)
    candidates = _cut(ordered, plan, known, terms)
    hits = _load_hits(candidates)
    watch.lap("load")
    retrievers = tuple(map(_as_one, zip(*asked, strict=True)))
    for retriever in retrievers:
        watch.milliseconds[retriever.retriever.value] = retriever.milliseconds
    watch.total()
    trace = SearchTrace(
        question=question,
        query=searched,
        query_class=classification.query_class,
        rule=classification.rule,
        # The name of the one retriever left, when the other did not answer.
        search_method=plan.method.value if len(answered[0].rankings) > 1 else answered[0].rankings[0].retriever.value,
        profile=used.name,
        weights=plan.weights,
        depth=plan.depth,
        top_k=plan.top_k,
        rrf_k=plan.settings.rrf_k,
        score_threshold=plan.settings.score_threshold,
        retrievers=retrievers,
        rerank=rerank_trace,
        reformulation=reformulation,
        candidates=candidates,
        timings_ms=watch.milliseconds,
        is_partly_encoded=plan.weights.vector > 0 and lags(filters.collections),
        joined_query=joined,
        named_collections=named,
    )
    annotate(method=trace.search_method, profile=trace.profile, query_class=str(trace.query_class), hits=len(hits))
    SEARCH_SECONDS.labels(method=trace.search_method).observe(watch.milliseconds["total"] / 1000)
    return SearchResult(hits, trace)


def find_named_collections(question: str, collection_ids: Sequence[int]) -> tuple[str, ...]:
    """Return the slugs of the collections whose name or slug the question contains as whole words.

    A name of one word must be rare: no ordinary word such as "parts", and in few passages of the other collections.
    """
    said = f" {' '.join(_WORDS.findall(question.casefold()))} "
    named = []
    for state in collection_states(collection_ids):
        others = [pk for pk in collection_ids if pk != state.pk]
        names = [_WORDS.findall(name.casefold()) for name in state.names]
        if any(
            f" {' '.join(words)} " in said and (len(words) > 1 or _is_rare(words[0], others))
            for words in names
            if words
        ):
            named.append(state.names[0])
    return tuple(named)


def _is_rare(word: str, collection_ids: Sequence[int]) -> bool:
    if CollectionVocabulary(collection_ids).is_ordinary(word):
        return False
    lexemes = set().union(*lexemes_of([word], list(by_configuration(collection_ids))).values())
    found = frequencies_in(collection_ids, lexemes)
    return max(found.values(), default=0) <= RARE_SHARE * passages_in(collection_ids)


def find_codes(question: str) -> frozenset[str]:
    """The lexemes of codes in the question, as letters and digits: ``mx9920w`` for MX-9920-W."""
    words = (word.strip(".,;:!?()\"'") for word in expand_identifiers(parse(question).text).split())
    return frozenset(word.lower() for word in words if _CODE.fullmatch(word))


def find_section(question: str) -> tuple[str, str] | None:
    """Return noun and number of the section, clause or step that the question names: ("clause", "1.2")."""
    named = _SECTION.search(parse(question).text)
    return (named[1].casefold(), named[2]) if named else None


def _use_embedder_weights(tuned: ProfileSettings) -> ProfileSettings:
    """Return the settings with the weights that were fitted to the embedder, unless the profile has its own."""
    if tuned.weights is not None or tuned.method is not SearchMethod.ZSCORE:
        return tuned
    try:
        fitted = current_calibration()
    except (RagsiteError, ImproperlyConfigured):
        return tuned  # the vector retriever reports the error
    share = fitted.vector_weight if fitted is not None else None
    return tuned if share is None else replace(tuned, weights=RetrieverWeights(share, 1 - share))


def _place_boosts(named: Sequence[str], before: Turn | None) -> list[MetadataBoost]:
    """The boosts for a passage's place: in a named collection, or where the answer ``before`` was found."""
    boosts = [MetadataBoost("collection", slug, NAMED_COLLECTION) for slug in named]
    if before is not None:
        boosts += [MetadataBoost("collection", slug, SAME_COLLECTION) for slug in before.collections]
        boosts += [MetadataBoost("document", document, SAME_DOCUMENT) for document in before.documents]
    return boosts


def join_questions(question: str, history: Sequence[Turn]) -> str:
    """The last two questions of ``history``, oldest first, and ``question``; empty if there are none.

    Empty also for a question with quoted phrases or excluded words: only passages that meet them are wanted.
    """
    parsed = parse(question)
    if parsed.is_constrained:
        return ""
    earlier = [" ".join(turn.question.replace("\x00", " ").split()) for turn in history[-MOST_JOINED:]]
    before = " ".join(_without_syntax(text) for text in earlier)[-LONGEST_JOINED_CHARACTERS:].strip()
    return f"{before} {parsed.text}" if before else ""


def search_weights(question: str) -> tuple[float, float]:
    """The weights of the question alone and of the joined text; they sum to 1."""
    words = question.casefold().split()
    most = FEW_WORDS_AFTER_AND if CONJUNCTIONS.intersection(words[:1]) else FEW_WORDS
    return SEARCH_WEIGHTS_OF_FEW_WORDS if len(words) <= most else SEARCH_WEIGHTS


def _without_syntax(question: str) -> str:
    try:
        return parse(question).text
    except InvalidQuery:  # one of exclusions only
        return ""


def _answered(
    texts: Sequence[str], asked: Sequence[Sequence[RetrieverResult]], known: Sequence[Known]
) -> list[_Search]:
    """The searches that at least one retriever answered, with their weights. Raises: SearchUnavailable for none."""
    rankings = [[result.ranking for result in results if result.ranking is not None] for results in asked]
    weights = search_weights(texts[0])
    answered = [
        _Search(text, weight, found, each)
        for text, weight, found, each in zip(texts, weights, rankings, known, strict=False)
        if found
    ]
    if not answered:
        if any(result.lost_node for results in asked for result in results):
            raise SearchUnavailable(database.outage_message())
        raise SearchUnavailable(_("The search cannot answer at the moment. Please try again in a minute."))
    return answered if len(answered) > 1 else [replace(answered[0], weight=1.0)]


def _fuse_each(searches: Sequence[_Search], plan: SearchPlan) -> list[list[Candidate]]:
    """Return the ranking of each search, over the candidates of all searches."""
    with span("search.fusion"):
        ids = {chunk.chunk_id for each in searches for ranking in each.rankings for chunk in ranking.chunks}
        return [
            fuse(plan, each.rankings, each.known.scores, ids, _largest_share(each.known.word_shares, ids))
            for each in searches
        ]


def _largest_share(shares: Mapping[int, float], chunk_ids: AbstractSet[int]) -> float:
    return max((share for pk, share in shares.items() if pk in chunk_ids), default=1.0)


def _make_strengths(question: str, search: _Search, lists: Sequence[Sequence[Candidate]]) -> Strengths | None:
    calibration = current_calibration()
    if calibration is None or not lists[0]:
        return None
    known = search.known
    return Strengths(calibration, identify_language(question), known.word_shares, known.languages)


def _rank_candidates(
    searches: Sequence[_Search],
    lists: Sequence[list[Candidate]],
    plan: SearchPlan,
    places: Sequence[MetadataBoost],
    codes: Mapping[int, AbstractSet[str]],
    given: AbstractSet[int],
    watch: Stopwatch,
) -> tuple[list[Candidate], RerankTrace | None]:
    """Return the candidates, best first, and the trace of the reranker.

    They are fused, boosted by their metadata, their ``places`` and the question's ``codes``, and reranked. Passages to
    which a curator gave the question are in ``given``, and come first.
    """
    tuned = plan.settings
    with span("search.fusion"):
        fused = lists[0]
        if len(lists) > 1:
            fused = add_searches(
                [(each.query, each.weight, found) for each, found in zip(searches, lists, strict=True)]
            )
        # Those of a setting stand here, before the metadata are read.
        boosts = [*tuned.metadata_boosts, *places]
        stored = load_metadata([each.chunk_id for each in fused]) if boosts else {}
        boosts += [MetadataBoost("code", code, NAMED_CODE) for code in sorted(set().union(*codes.values()))]
        boosts += [GIVEN] if given else []
        if boosts:
            ids = {each.chunk_id for each in fused}
            metadata = {pk: {**stored.get(pk, {}), "code": sorted(codes.get(pk, ()))} for pk in ids}
            for pk in given & ids:
                metadata[pk][GIVEN.key] = GIVEN.value
            fused = boost(fused, boosts, metadata)
    watch.lap("fuse")
    rerank_trace = None
    if tuned.is_reranked and fused:
        wordings = {parse(each.query).text: each.weight for each in searches}
        with span("search.rerank", reranker=tuned.reranker):
            fused, rerank_trace = reranked(wordings, fused, tuned)
            annotate(status=rerank_trace.status.value)
        watch.lap("rerank")
    return fused, rerank_trace


def _as_one(results: Sequence[RetrieverResult]) -> RetrieverTrace:
    """One retriever's trace for all searches: a failure, if any; else its trace for the question alone."""
    traces = [result.trace for result in results]
    shown = next((trace for trace in traces if trace.status.is_failure), traces[0])
    return replace(
        shown,
        milliseconds=max(trace.milliseconds for trace in traces),
        error=next((trace.error for trace in traces if trace.error), ""),
        expansions={typed: meant for trace in reversed(traces) for typed, meant in trace.expansions.items()},
    )


def _load_hits(candidates: Sequence[Candidate]) -> tuple[Hit, ...]:
    """The passages of the ranked candidates; passages deleted since the retrievers ran are left out."""
    kept = [candidate for candidate in candidates if candidate.rank is not None]
    passages = load_passages([candidate.chunk_id for candidate in kept])
    present = [candidate for candidate in kept if candidate.chunk_id in passages]
    return tuple(Hit(rank, passages[each.chunk_id], each) for rank, each in enumerate(present, start=1))


def _cut(
    fused: Sequence[Candidate], plan: SearchPlan, known: Sequence[Known], terms: Mapping[int, tuple[str, ...]]
) -> tuple[Candidate, ...]:
    """The candidates with their terms: the first ``top_k`` that reach the threshold are ranked, the others dropped."""
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
