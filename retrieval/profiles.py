"""The search profile in force."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from retrieval.ranking.plans import NO_RERANKER
from retrieval.ranking.profile import ProfileSettings
from retrieval.types import SearchMethod


def built_in_profile() -> ProfileSettings:
    """What the site searches with before an admin has published a profile: the settings' defaults."""
    return ProfileSettings(
        method=SearchMethod(settings.RETRIEVAL_DEFAULT_METHOD),
        top_k=settings.RETRIEVAL_TOP_K,
        depth=settings.RETRIEVAL_DEPTH,
        reranker=settings.RETRIEVAL_RERANKER,
        context_budget_tokens=settings.CONTEXT_BUDGET_TOKENS,
    )


def active_profile() -> ProfileSettings:
    """What a search uses that names nothing else. RETRIEVAL_HYBRID_ENABLED=false leaves only its vector leg."""
    return dense_only_unless_hybrid(built_in_profile())


def dense_only_unless_hybrid(profile: ProfileSettings) -> ProfileSettings:
    """The profile, or its vector leg alone without reranking while the site's switch says so."""
    if settings.RETRIEVAL_HYBRID_ENABLED:
        return profile
    return replace(profile, method=SearchMethod.VECTOR, weights=None, reranker=NO_RERANKER)
