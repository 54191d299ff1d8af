"""Find an earlier answer to the same question about unchanged documents.

The key contains all that an answer depends on. After a change the key differs, so cached answers need no removal.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import get_language

from chat.answering import writers
from chat.answering.approved_answers import read_approved_answers_version
from chat.answering.prompts import PROMPT_VERSION
from chat.metrics import ANSWER_CACHE
from chat.models import Answer, Citation, Feedback
from chat.models.instructions import list_instructions
from core.backend_setting import BackendSetting
from retrieval.index.closeness import find_current_calibration
from retrieval.models import CollectionStatistics, Embedder
from retrieval.rights.search_filters import hash_restrictions
from retrieval.search.profiles.profiles import choose_profile_for_visitor
from retrieval.text.terms import ANALYSIS_VERSION
from retrieval.text.word_lists import fill_in
from retrieval.types import SearchFilters, Turn

# Increase this number when a change of the code changes answers.
RULES_VERSION = 15
_COPIED = (
    *("text", "written", "state", "refused", "alternatives", "choices", "generator", "prompt_version", "search_method"),
    *("completed_question", "joined_question", "confidence", "computed", "table", "statements"),
    *("profile_version_id", "sources"),
)
# The answer to a question with one of these words ("today") is valid only on its day.
_OF_TODAY = re.compile(fill_in(r"\b<of_today>\b", "questions"), re.IGNORECASE)


def build_key(
    question: str,
    filters: SearchFilters,
    *,
    method: str = "",
    history: Sequence[Turn] = (),
    subject: str = "",
    writer: str = "",
) -> str:
    """Return the cache key of an answer, a SHA-256 of all that it depends on; "" if the cache is off.

    Call it before the search, during which documents may change. Raises: SearchUnavailable.
    """
    if settings.ANSWER_CACHE_SECONDS <= 0:
        return ""
    profile = choose_profile_for_visitor(subject)
    writer = writer or writers.get_default_writer_name()
    model = writers.list_language_models().get(writer)
    versions = CollectionStatistics.objects.filter(collection__in=filters.collections).order_by("collection")
    parts: dict[str, object] = {
        "rules": [RULES_VERSION, ANALYSIS_VERSION],
        "question": _normalize(question),
        "history": [(turn.question, turn.answer) for turn in history],
        "method": method,
        "profile": [profile.name, profile.version_id, repr(profile.settings)],
        "hybrid": settings.RETRIEVAL_HYBRID_ENABLED,
        "reranker": _describe_backend(settings.RERANKERS.get(profile.settings.reranker, {})),
        "reformulator": _describe_backend(settings.QUERY_REFORMULATOR),
        "filters": repr(filters),
        "narrowing": hash_restrictions(filters.collections, filters.readers),
        "approved": read_approved_answers_version(filters.collections),
        "versions": list(versions.values_list("collection", "version")),
        "embedder": list(Embedder.objects.filter(is_active=True).values_list("pk", "name")),
        "scales": repr(find_current_calibration()),
        "generator": writer,
        "model": [
            PROMPT_VERSION,
            model.base_url,
            model.model,
            settings.OPENAI_MAX_TOKENS,
            model.context_tokens,
            settings.OPENAI_PROMPT_TOKENS,
            settings.CHAT_MODEL_MAY_REFUSE,
            [told.pk for told in list_instructions(collections=filters.collections)],
            timezone.localdate().isoformat() if _OF_TODAY.search(question) else "",
        ]
        if model is not None
        else [],
        "language": get_language(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def find_reusable_answer(key: str) -> Answer | None:
    """Return the newest answer with this key that may be used again; None if there is none."""
    if not key:
        return None
    unhelpful_again = Feedback.objects.filter(answer__repeats=OuterRef("pk"), helpful=False)
    return (
        Answer.objects.filter(
            cache_key=key,
            status=Answer.Status.COMPLETED,
            repeats=None,
            notice="",
            degraded=[],
            completed_at__gt=timezone.now() - timedelta(seconds=settings.ANSWER_CACHE_SECONDS),
        )
        .exclude(feedback__helpful=False)
        .exclude(Exists(unhelpful_again))
        .order_by("-completed_at")
        .prefetch_related("citations")
        .first()
    )


def find_cached_answer(
    answer: Answer, filters: SearchFilters, history: Sequence[Turn], writer: str
) -> tuple[str, Answer | None]:
    """Return the answer's cache key, and the earlier answer to copy (or None).

    The key is empty if the cache is off. Raises: SearchUnavailable.
    """
    subject = answer.conversation.experiment_subject
    key = build_key(answer.question, filters, method=answer.method, history=history, subject=subject, writer=writer)
    if not key or answer.anew:
        ANSWER_CACHE.labels(outcome="off").inc()
        return key, None
    earlier = find_reusable_answer(key)
    ANSWER_CACHE.labels(outcome="hit" if earlier else "miss").inc()
    return key, earlier


def copy_original_answer(answer: Answer, original: Answer) -> list[Citation]:
    """Copy ``original`` into ``answer`` without tokens and cost. Return the citations, not yet saved."""
    for name in _COPIED:
        setattr(answer, name, getattr(original, name))
    completed_at = original.completed_at.isoformat() if original.completed_at else None
    answer.trace = {**original.trace, "repeats": {"answer": str(original.pk), "completed_at": completed_at}}
    answer.repeats = Answer.objects.filter(pk=original.pk).first()
    fields = [field.attname for field in Citation._meta.concrete_fields if field.name not in ("id", "answer")]
    return [
        Citation(answer=answer, **{name: getattr(cited, name) for name in fields}) for cited in original.citations.all()
    ]


def _normalize(question: str) -> str:
    return " ".join(unicodedata.normalize("NFC", question).split())


def _describe_backend(backend: BackendSetting) -> list[object]:
    options = {name: value for name, value in backend.get("OPTIONS", {}).items() if name != "api_key"}
    return [backend.get("BACKEND", ""), options]
