"""Rows whose every change is recorded, however it is made: on a page, by the API, by a command."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser, Permission
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save

from ragsite.audit.recording import record
from retrieval.models import Document


@dataclass(frozen=True, slots=True)
class Watched:
    """A model, and what of it is recorded.

    Of ``values`` an entry tells the old and the new value, of ``names`` only that they changed: they may be personal,
    or long. ``relations`` are many-to-many fields.
    """

    model: str
    called: str
    values: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        return (*self.values, *self.names)


WATCHED = (
    Watched(
        "auth.User",
        "user",
        values=("is_active", "is_staff", "is_superuser"),
        names=("username", "password", "email", "first_name", "last_name"),
        relations=("groups", "user_permissions"),
    ),
    Watched("auth.Group", "group", names=("name",), relations=("permissions",)),
    Watched(
        "ragsite.ApiKey",
        "key",
        values=("scopes", "is_limited", "rate", "expires_at", "revoked_at"),
        names=("name",),
        relations=("collections",),
    ),
    Watched("ragsite.Invitation", "invitation", values=("expires_at", "accepted_by_id"), relations=("groups",)),
    Watched("mfa.Authenticator", "second_factor", values=("type", "user_id")),
    Watched("socialaccount.SocialAccount", "single_sign_on", values=("provider", "user_id")),
    Watched(
        "retrieval.Collection",
        "collection",
        values=("slug", "visibility", "text_search_configuration"),
        names=("name", "description"),
    ),
    Watched("retrieval.CollectionGrant", "grant", values=("collection_id", "group_id", "user_id", "role")),
    Watched(
        "retrieval.Document",
        "document",
        values=("collection_id", "content_hash"),
        names=("source", "title", "url", "language", "metadata"),
    ),
    Watched(
        "chat.QuestionBudget", "budget", values=("questions_a_day", "tokens_a_day", "cost_a_day", "user_id", "group_id")
    ),
    Watched(
        "retrieval.Source",
        "source",
        values=("collection_id", "kind", "interval_minutes", "is_paused"),
        names=("name", "options", "secret"),
    ),
    Watched("retrieval.Draft", "draft", values=("status", "override")),
    Watched("retrieval.SearchProfile", "profile", values=("slug",), names=("name", "description")),
    Watched("retrieval.SearchProfileVersion", "profile_version", values=("number",)),
    Watched("retrieval.Publication", "publication", values=("version_id", "override")),
    Watched(
        "evaluation.GatePolicy",
        "gate",
        values=("metric", "largest_loss", "required_for_publishing", "required_for_documents", "watches_corpus"),
    ),
    Watched("evaluation.Experiment", "experiment", values=("started_at", "ended_at")),
)


def watch_all() -> None:
    for watched in WATCHED:
        _watch(watched)


def _watch(watched: Watched) -> None:
    model = apps.get_model(watched.model)
    named = f"audit.{watched.model}"
    before = _Before(watched)
    pre_save.connect(before.remember, sender=model, weak=False, dispatch_uid=f"{named}.before")
    post_save.connect(before.saved, sender=model, weak=False, dispatch_uid=f"{named}.saved")
    post_delete.connect(before.deleted, sender=model, weak=False, dispatch_uid=f"{named}.deleted")
    for relation in watched.relations:
        field = model._meta.get_field(relation)
        changes = _Relation(watched, relation)
        m2m_changed.connect(
            changes.changed,
            sender=field.remote_field.through,
            weak=False,
            dispatch_uid=f"{named}.{relation}",
        )


class _Before:
    """What a row was before it is saved, kept on the instance that saves it."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def remember(self, sender: type[Model], instance: Any, update_fields: Iterable[str] | None, **_: Any) -> None:
        instance._audited_before = None
        if instance.pk is None or (update_fields is not None and not self._fields_in(update_fields)):
            return
        rows = sender._default_manager.filter(pk=instance.pk).values(*self._watched.fields)
        instance._audited_before = rows.first()

    def saved(
        self,
        sender: type[Model],
        instance: Any,
        created: bool,
        raw: bool,
        update_fields: Iterable[str] | None,
        **_: Any,
    ) -> None:
        if _is_exempt(instance):
            return
        watched, before = self._watched, instance._audited_before
        if created:
            record(f"{watched.called}.added", instance, **{name: getattr(instance, name) for name in watched.values})
            return
        if before is None:
            return
        names = self._fields_in(update_fields) if update_fields is not None else watched.fields
        changed = [name for name in names if before[name] != getattr(instance, name)]
        if changed:
            record(
                f"{watched.called}.changed",
                instance,
                changed=sorted(changed),
                **{name: [before[name], getattr(instance, name)] for name in changed if name in watched.values},
            )

    def deleted(self, sender: type[Model], instance: Any, **_: Any) -> None:
        if not _is_exempt(instance):
            record(f"{self._watched.called}.deleted", instance)

    def _fields_in(self, update_fields: Iterable[str]) -> list[str]:
        saved = set(update_fields)
        return [name for name in self._watched.fields if name in saved or name.removesuffix("_id") in saved]


class _Relation:
    def __init__(self, watched: Watched, relation: str) -> None:
        self._watched = watched
        self._relation = relation

    def changed(
        self, action: str, instance: Any, reverse: bool, model: type[Model], pk_set: set[Any] | None, **_: Any
    ) -> None:
        """Both ends of the relation can be changed from the other end; clearing it names no rows."""
        match action:
            case "post_add":
                change = "added"
            case "post_remove" | "pre_clear":
                change = "removed"
            case _:
                return
        if action == "pre_clear":
            if reverse:
                rows = apps.get_model(self._watched.model)._default_manager.filter(**{self._relation: instance})
            else:
                rows = getattr(instance, self._relation).all()
        else:
            rows = model._default_manager.filter(pk__in=pk_set or ())
        others = list(rows)
        if not others:
            return
        pairs = [(other, [instance]) for other in others] if reverse else [(instance, others)]
        for subject, related in pairs:
            names = sorted(_name(each) for each in related)
            record(f"{self._watched.called}.{self._relation}_{change}", subject, names=names)


def _name(related: Model) -> str:
    if isinstance(related, AbstractBaseUser):
        # By the number: an entry is never changed, and a name must be.
        return f"user {related.pk}"
    return f"{related.content_type.app_label}.{related.codename}" if isinstance(related, Permission) else str(related)


def _is_exempt(instance: Model) -> bool:
    """Documents of a working copy, which nobody but staff meets: the draft's publication is what is recorded."""
    return isinstance(instance, Document) and hasattr(instance.collection, "draft")
