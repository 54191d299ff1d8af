"""Choose, create, publish and withdraw versions of search profiles, which are the settings of searches."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from core.audit_signal import record_event
from core.dataclass_json import to_json
from retrieval.exceptions import SearchUnavailable
from retrieval.fusion_methods import METHODS
from retrieval.gates import PublicationRefused, find_publication_objections
from retrieval.metrics import PROFILE_FAILURES
from retrieval.models import Publication, SearchProfile, SearchProfileVersion
from retrieval.profile_settings import NO_RERANKER, ImproperProfile, ProfileSettings, from_json
from retrieval.search.ranking.plans import SearchPlan
from retrieval.types import SearchMethod

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

logger = logging.getLogger(__name__)

BUILT_IN = "built-in"
# This is SQL, because the ORM takes longer to build the query than PostgreSQL to run it.
_IN_FORCE = """
    SELECT version.id, profile.slug || ' v' || version.number, version.settings
    FROM retrieval_searchprofileversion AS version
    JOIN retrieval_searchprofile AS profile ON profile.id = version.profile_id
    WHERE version.is_published
"""
# PostgreSQL's advisory lock for publishing. There may be no published row to lock.
_PUBLISHING_LOCK = 0x7261_6770


@dataclass(frozen=True, slots=True)
class NamedProfile:
    """A search profile (the settings of a search) with the name that explanations show.

    ``version_id`` is None for settings that are not stored. ``error`` says why the published version cannot be used.
    """

    name: str
    settings: ProfileSettings
    version_id: int | None = None
    error: str = ""

    def __str__(self) -> str:
        return self.name


# Returns the profile for a visitor ("user:ID" or "visitor:ID"), or None for the published profile.
Chooser = Callable[[str], NamedProfile | None]
_choosers: list[Chooser] = []


def get_built_in_profile() -> ProfileSettings:
    return ProfileSettings(
        method=SearchMethod(settings.RETRIEVAL_DEFAULT_METHOD),
        top_k=settings.RETRIEVAL_TOP_K,
        depth=settings.RETRIEVAL_DEPTH,
        reranker=settings.RETRIEVAL_RERANKER,
        context_budget_tokens=settings.CONTEXT_BUDGET_TOKENS,
    )


def active_profile() -> NamedProfile:
    """Return the published search profile, or the built-in one if none is published.

    If the published profile cannot be read, the result is the built-in one, with ``error``. Raises: SearchUnavailable.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute(_IN_FORCE)
            row = cursor.fetchone()
    except DatabaseError as error:
        logger.exception("The search profile in force cannot be looked up.")
        raise SearchUnavailable(_("The search cannot answer at the moment. Please try again in a minute.")) from error
    if row is None:
        return NamedProfile(BUILT_IN, get_built_in_profile())
    version_id, name, stored = row
    try:
        return NamedProfile(name, _parse_stored_settings(stored), version_id)
    except ImproperProfile as error:
        PROFILE_FAILURES.inc()
        logger.error("The search profile in force, %s, cannot be used; the built-in one is: %s", name, error)
        return NamedProfile(f"{BUILT_IN} (instead of {name})", get_built_in_profile(), error=f"{name}: {error}")


def register_profile_chooser(chooser: Chooser) -> None:
    if chooser not in _choosers:
        _choosers.append(chooser)


def choose_profile_for_visitor(subject: str) -> NamedProfile:
    """Return the search profile for a visitor ("user:ID" or "visitor:ID").

    The first chooser that returns a profile decides, otherwise :func:`active_profile`. Raises: SearchUnavailable.
    """
    for chooser in _choosers if subject else ():
        try:
            chosen = chooser(subject)
        except Exception:
            logger.exception("A visitor's search profile could not be chosen; the one in force serves.")
            continue
        if chosen is not None:
            return chosen
    return active_profile()


@functools.lru_cache(maxsize=16)
def _parse_stored_settings(stored: str) -> ProfileSettings:
    return from_json(json.loads(stored))


def find_published_version() -> SearchProfileVersion | None:
    return SearchProfileVersion.objects.select_related("profile").filter(is_published=True).first()


def build_named_profile(version: SearchProfileVersion) -> NamedProfile:
    """Return a stored version's name and settings. Raises: ImproperProfile if the settings cannot be read."""
    return NamedProfile(str(version), version.read_settings(), version.pk)


def apply_hybrid_setting(plan: SearchPlan) -> SearchPlan:
    """Return the plan; if RETRIEVAL_HYBRID_ENABLED is false, a changed plan that ranks by vectors alone."""
    if settings.RETRIEVAL_HYBRID_ENABLED:
        return plan
    tuned = replace(
        plan.settings,
        method=SearchMethod.VECTOR,
        score_threshold=plan.settings.score_threshold if plan.method is SearchMethod.VECTOR else None,
        reranker=NO_RERANKER,
    )
    return replace(plan, settings=tuned, weights=METHODS[SearchMethod.VECTOR].weights or plan.weights)


def add_version(
    profile: SearchProfile,
    profile_settings: ProfileSettings,
    *,
    note: str = "",
    created_by: AbstractBaseUser | AnonymousUser | None = None,
) -> SearchProfileVersion:
    with transaction.atomic():
        SearchProfile.objects.select_for_update().get(pk=profile.pk)
        last = profile.versions.aggregate(number=Max("number"))["number"] or 0
        return SearchProfileVersion.objects.create(
            profile=profile,
            number=last + 1,
            settings=to_json(profile_settings),
            note=note,
            created_by_id=created_by.pk if created_by else None,
        )


def publish_profile(
    version: SearchProfileVersion,
    published_by: AbstractBaseUser | AnonymousUser | None = None,
    *,
    override: str = "",
) -> Publication:
    """Publish this version of the search profile instead of the previous one.

    ``override`` is the reason to publish although a quality gate (`retrieval.gates`) objects. Raises: ImproperProfile
    if the version cannot be read; PublicationRefused if a gate objects and there is no reason.
    """
    version.read_settings()
    by = published_by.pk if published_by else None
    with transaction.atomic():
        _lock_publications()
        objections = find_publication_objections(version)
        if objections and not override.strip():
            raise PublicationRefused(objections)
        SearchProfileVersion.objects.filter(is_published=True).update(is_published=False)
        SearchProfileVersion.objects.filter(pk=version.pk).update(
            is_published=True, published_at=timezone.now(), published_by=by
        )
        publication = Publication.objects.create(
            version=version,
            published_by_id=by,
            objections=to_json(objections),
            override=override.strip() if objections else "",
        )
        version.refresh_from_db()
    if objections:
        logger.warning("%s was published against objections, because: %s", version, publication.override)
    return publication


def withdraw_published_profile() -> SearchProfileVersion | None:
    with transaction.atomic():
        _lock_publications()
        version = find_published_version()
        SearchProfileVersion.objects.filter(is_published=True).update(is_published=False)
        if version is not None:
            record_event("profile_version.withdrawn", version)
    return version


def _lock_publications() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_PUBLISHING_LOCK])
