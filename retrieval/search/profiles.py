"""Search profiles: which one is in force, and how a version is made and put in force.

The version in force is looked up for each search, so that every process searches with it from the moment it is
published. One switch stands above all profiles: while RETRIEVAL_HYBRID_ENABLED is false, only vectors rank.
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

from retrieval.exceptions import SearchUnavailable
from retrieval.gates import PublicationRefused, objections_to
from retrieval.infrastructure.metrics import PROFILE_CHOICE_FAILURES, PROFILE_FAILURES
from retrieval.infrastructure.record import tell
from retrieval.models import Publication, SearchProfile, SearchProfileVersion
from retrieval.profile_settings import METHOD_WEIGHTS, NO_RERANKER, ImproperProfile, ProfileSettings, from_json, to_json
from retrieval.search.plans import SearchPlan
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
    """Settings and what they are called in an explanation.

    ``version_id`` is the stored version's, None for what is not stored. ``error`` says why these are not the settings
    of the version in force; it is for engineers, never for visitors.
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
    """What the site searches with before an admin has published a profile: the settings' defaults."""
    return ProfileSettings(
        method=SearchMethod(settings.RETRIEVAL_DEFAULT_METHOD),
        top_k=settings.RETRIEVAL_TOP_K,
        depth=settings.RETRIEVAL_DEPTH,
        reranker=settings.RETRIEVAL_RERANKER,
        context_budget_tokens=settings.CONTEXT_BUDGET_TOKENS,
    )


def active_profile() -> NamedProfile:
    """What a search uses that names nothing else: the version in force, or the built-in profile when there is none.

    A version that cannot be read gives way to the built-in profile, with an ``error``, in the log and in a metric.
    Raises: SearchUnavailable when the database does not answer.
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
    """Have ``chooser`` asked which profile a visitor gets; registering it again changes nothing."""
    if chooser not in _choosers:
        _choosers.append(chooser)


def profile_for(subject: str) -> NamedProfile:
    """What the visitor's questions are searched with: the first chooser's choice, else as :func:`active_profile`.

    Without identity (an empty subject) nobody is asked. A chooser that fails chooses nothing, in the log and in a
    metric. Raises: SearchUnavailable when the database does not answer.
    """
    for chooser in _choosers if subject else ():
        try:
            chosen = chooser(subject)
        except Exception:
            PROFILE_CHOICE_FAILURES.inc()
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
    """A version, to be searched with. Raises: ImproperProfile when it cannot be read."""
    return NamedProfile(str(version), version.read(), version.pk)


def dense_only_unless_hybrid(plan: SearchPlan) -> SearchPlan:
    """The plan; or, while the site's switch says so, the same search by vectors alone, in their order.

    A threshold that was set for another method's scores does not hold for cosines, and goes.
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
    """The profile's next version, saved; it is not in force yet."""
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
    """Put the version in force, in place of the one that was, and return the record of it.

    The gates are asked first. What they object to is published only with ``override``, a reason to do so all the same,
    which is recorded with the objections; without objections it is not needed, and not recorded.

    Raises: ImproperProfile when the version cannot be read, PublicationRefused when a gate objects.
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
            objections=[objection.as_json() for objection in objections],
            override=override.strip() if objections else "",
        )
        version.refresh_from_db()
    if objections:
        logger.warning("%s was published against objections, because: %s", version, publication.override)
    return publication


def withdraw() -> SearchProfileVersion | None:
    """Put no version in force, so that the built-in profile is; returns the version that was."""
    with transaction.atomic():
        _take_turns()
        version = published_version()
        SearchProfileVersion.objects.filter(is_published=True).update(is_published=False)
        if version is not None:
            tell("profile_version.withdrawn", version)
    return version


def _take_turns() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_PUBLISHING_LOCK])
