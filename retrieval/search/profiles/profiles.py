"""Search profiles: which one is in force, and how a version is made and put in force.

The published version is read for each search, so that every process uses it from the moment of its publication. One
switch overrules all profiles: while RETRIEVAL_HYBRID_ENABLED is false, only vectors rank.
"""

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
from retrieval.gates import PublicationRefused, objections_to
from retrieval.metrics import PROFILE_FAILURES
from retrieval.models import Publication, SearchProfile, SearchProfileVersion
from retrieval.profile_settings import METHOD_WEIGHTS, NO_RERANKER, ImproperProfile, ProfileSettings, from_json
from retrieval.search.ranking.plans import SearchPlan
from retrieval.types import SearchMethod

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

logger = logging.getLogger(__name__)

BUILT_IN = "built-in"
# Asked for each search, so not put together anew each time, which takes longer than PostgreSQL does.
_IN_FORCE = """
    SELECT version.id, profile.slug || ' v' || version.number, version.settings
    FROM retrieval_searchprofileversion AS version
    JOIN retrieval_searchprofile AS profile ON profile.id = version.profile_id
    WHERE version.is_published
"""
# Publications take turns, also while no version is in force yet and there is no row to lock.
_PUBLISHING_LOCK = 0x7261_6770


@dataclass(frozen=True, slots=True)
class NamedProfile:
    """Settings with the name that explanations show.

    ``version_id`` is the stored version's; None if it is not stored. ``error`` says why the published version's
    settings are not used; it is for engineers, never for visitors.
    """

    name: str
    settings: ProfileSettings
    version_id: int | None = None
    error: str = ""

    def __str__(self) -> str:
        return self.name


# What a visitor ("user:ID" or "visitor:ID") is to be searched with; None: nothing of its own.
Chooser = Callable[[str], NamedProfile | None]
_choosers: list[Chooser] = []


def built_in_profile() -> ProfileSettings:
    """The profile until an admin publishes one: the settings' defaults."""
    return ProfileSettings(
        method=SearchMethod(settings.RETRIEVAL_DEFAULT_METHOD),
        top_k=settings.RETRIEVAL_TOP_K,
        depth=settings.RETRIEVAL_DEPTH,
        reranker=settings.RETRIEVAL_RERANKER,
        context_budget_tokens=settings.CONTEXT_BUDGET_TOKENS,
    )


def active_profile() -> NamedProfile:
    """The default profile of a search: the published version, or the built-in profile if there is none.

    If the version cannot be read, the built-in profile is used, with an ``error``, in the log and in a metric. Raises:
    SearchUnavailable if the database does not answer.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute(_IN_FORCE)
            row = cursor.fetchone()
    except DatabaseError as error:
        logger.exception("The search profile in force cannot be looked up.")
        raise SearchUnavailable(_("The search cannot answer at the moment. Please try again in a minute.")) from error
    if row is None:
        return NamedProfile(BUILT_IN, built_in_profile())
    version_id, name, stored = row
    try:
        return NamedProfile(name, _read(stored), version_id)
    except ImproperProfile as error:
        PROFILE_FAILURES.inc()
        logger.error("The search profile in force, %s, cannot be used; the built-in one is: %s", name, error)
        return NamedProfile(f"{BUILT_IN} (instead of {name})", built_in_profile(), error=f"{name}: {error}")


def register_chooser(chooser: Chooser) -> None:
    """Register ``chooser``, which chooses a visitor's profile; registering it again changes nothing."""
    if chooser not in _choosers:
        _choosers.append(chooser)


def profile_for(subject: str) -> NamedProfile:
    """The profile for the visitor's questions: the first chooser's choice, else as :func:`active_profile`.

    Without identity (an empty subject) no chooser is called. A chooser that fails is logged and skipped.

    Raises: SearchUnavailable if the database does not answer.
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
def _read(stored: str) -> ProfileSettings:
    return from_json(json.loads(stored))


def published_version() -> SearchProfileVersion | None:
    """The version in force, with its profile."""
    return SearchProfileVersion.objects.select_related("profile").filter(is_published=True).first()


def named(version: SearchProfileVersion) -> NamedProfile:
    """The profile of a version. Raises: ImproperProfile if it cannot be read."""
    return NamedProfile(str(version), version.read(), version.pk)


def dense_only_unless_hybrid(plan: SearchPlan) -> SearchPlan:
    """The plan; while the site's switch is off, the same search by vectors alone, in their order.

    A threshold for another method's scores is dropped, because it does not apply to cosines.
    """
    if settings.RETRIEVAL_HYBRID_ENABLED:
        return plan
    tuned = replace(
        plan.settings,
        method=SearchMethod.VECTOR,
        score_threshold=plan.settings.score_threshold if plan.method is SearchMethod.VECTOR else None,
        reranker=NO_RERANKER,
    )
    return replace(plan, settings=tuned, weights=METHOD_WEIGHTS[SearchMethod.VECTOR])


def add_version(
    profile: SearchProfile,
    profile_settings: ProfileSettings,
    *,
    note: str = "",
    created_by: AbstractBaseUser | AnonymousUser | None = None,
) -> SearchProfileVersion:
    """The profile's next version, saved and not yet published."""
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


def publish(
    version: SearchProfileVersion,
    published_by: AbstractBaseUser | AnonymousUser | None = None,
    *,
    override: str = "",
) -> Publication:
    """Publish the version instead of the previous one, and return the record of it.

    The gates are checked first. If they object, it is published only with ``override``, the reason to publish anyway,
    which is recorded with the objections; without objections it is neither needed nor recorded.

    Raises: ImproperProfile if the version cannot be read, PublicationRefused if a gate objects.
    """
    version.read()
    by = published_by.pk if published_by else None
    with transaction.atomic():
        _take_turns()
        objections = objections_to(version)
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


def withdraw() -> SearchProfileVersion | None:
    """Withdraw the published version, so that the built-in profile is used; returns that version."""
    with transaction.atomic():
        _take_turns()
        version = published_version()
        SearchProfileVersion.objects.filter(is_published=True).update(is_published=False)
        if version is not None:
            record_event("profile_version.withdrawn", version)
    return version


def _take_turns() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_PUBLISHING_LOCK])
