from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser, Permission
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save

from ragsite.operations.audit_log import record_action
from retrieval.models import Document


@dataclass(frozen=True, slots=True)
class AuditedModel:
    """A model whose changes are recorded in the audit log.

    Three attributes are lists of field names, separated by spaces:

    - ``values``: fields of which the log contains the old and the new value.
    - ``names``: fields of which the log only says that they changed, because a value may be personal or long.
    - ``relations``: many-to-many fields.
    """

    model: str
    called: str
    values: str = ""
    names: str = ""
    relations: str = ""


AUDITED_MODELS = (
    AuditedModel(
        "auth.User",
        "user",
        "is_active is_staff is_superuser",
        names="username password email first_name last_name",
        relations="groups user_permissions",
    ),
    AuditedModel("auth.Group", "group", names="name", relations="permissions"),
    AuditedModel(
        "ragsite.ApiKey", "key", "scopes is_limited rate expires_at revoked_at", names="name", relations="collections"
    ),
    AuditedModel("ragsite.Invitation", "invitation", "expires_at accepted_by_id", relations="groups"),
    AuditedModel("mfa.Authenticator", "second_factor", "type user_id"),
    AuditedModel("socialaccount.SocialAccount", "single_sign_on", "provider user_id"),
    AuditedModel(
        "retrieval.Collection",
        "collection",
        "slug visibility text_search_configuration is_searched_by_name",
        names="name description suggested_questions",
    ),
    AuditedModel("retrieval.CollectionGrant", "grant", "collection_id group_id user_id role"),
    AuditedModel(
        "retrieval.Document", "document", "collection_id content_hash", names="source title url language metadata"
    ),
    AuditedModel("chat.QuestionBudget", "budget", "questions_a_day tokens_a_day cost_a_day user_id group_id"),
    AuditedModel(
        "retrieval.Source", "source", "collection_id kind interval_minutes is_paused", names="name options secret"
    ),
    AuditedModel(
        "retrieval.RegisteredConnector",
        "connector",
        "name kind package version is_for_curators",
        names="manifest",
    ),
    AuditedModel("retrieval.Webhook", "webhook", "is_active events", names="address secret"),
    AuditedModel("chat.CollectionInstructions", "instructions", "collection_id number is_active", names="text"),
    AuditedModel(
        "chat.LanguageModel",
        "language_model",
        "name model context_tokens price_prompt price_completion is_default is_enabled",
        names="base_url secret",
        relations="groups",
    ),
    AuditedModel("retrieval.Draft", "draft", "status override"),
    AuditedModel("retrieval.SearchProfile", "profile", "slug", names="name description"),
    AuditedModel("retrieval.SearchProfileVersion", "profile_version", "number"),
    AuditedModel("retrieval.Publication", "publication", "version_id override"),
    AuditedModel("evaluation.GatePolicy", "gate", "metric largest_loss required_for_publishing required_for_documents"),
    AuditedModel("evaluation.Experiment", "experiment", "started_at ended_at"),
)


def audit_all_models() -> None:
    for watched in AUDITED_MODELS:
        _audit_model(watched)


def _audit_model(watched: AuditedModel) -> None:
    model, values = apps.get_model(watched.model), watched.values.split()
    fields = [*values, *watched.names.split()]

    def remember_stored_values(instance: Any, update_fields: Iterable[str] | None, **_: Any) -> None:
        names = fields
        if update_fields is not None:
            names = [name for name in names if {name, name.removesuffix("_id")} & set(update_fields)]
        rows = model._default_manager.filter(pk=instance.pk).values(*names) if names else model._default_manager.none()
        instance._audited_before = (instance.pk is not None and rows.first()) or {}

    def record_save(instance: Any, created: bool, **_: Any) -> None:
        if _is_in_draft(instance):
            return
        if created:
            record_action(f"{watched.called}.added", instance, **{name: getattr(instance, name) for name in values})
            return
        changed = {
            name: [before, getattr(instance, name)]
            for name, before in instance._audited_before.items()
            if before != getattr(instance, name)
        }
        if changed:
            told = {name: both for name, both in changed.items() if name in values}
            record_action(f"{watched.called}.changed", instance, changed=sorted(changed), **told)

    def record_deletion(instance: Any, **_: Any) -> None:
        if not _is_in_draft(instance):
            record_action(f"{watched.called}.deleted", instance)

    for signal, receiver in (
        (pre_save, remember_stored_values),
        (post_save, record_save),
        (post_delete, record_deletion),
    ):
        signal.connect(receiver, sender=model, weak=False, dispatch_uid=f"audit.{watched.model}.{receiver.__name__}")
    for relation in watched.relations.split():
        m2m_changed.connect(
            partial(_record_relation_change, watched, relation),
            sender=model._meta.get_field(relation).remote_field.through,
            weak=False,
            dispatch_uid=f"audit.{watched.model}.{relation}",
        )


def _record_relation_change(
    watched: AuditedModel,
    relation: str,
    action: str,
    instance: Any,
    reverse: bool,
    model: type[Model],
    pk_set: set[Any] | None,
    **_: Any,
) -> None:
    change = {"post_add": "added", "post_remove": "removed", "pre_clear": "removed"}.get(action)
    if change is None:
        return
    if action != "pre_clear":
        others = list(model._default_manager.filter(pk__in=pk_set or ()))
    elif reverse:
        others = list(apps.get_model(watched.model)._default_manager.filter(**{relation: instance}))
    else:
        others = list(getattr(instance, relation).all())
    pairs = [(other, [instance]) for other in others] if reverse else [(instance, others)] if others else []
    for subject, related in pairs:
        names = sorted(_get_name(each) for each in related)
        record_action(f"{watched.called}.{relation}_{change}", subject, names=names)


def _get_name(related: Model) -> str:
    if isinstance(related, AbstractBaseUser):
        # The audit entry stays when the person is erased, so it contains the id instead of the name.
        return f"user {related.pk}"
    if isinstance(related, Permission):
        # `related.content_type` would be a query for each of a role's hundred permissions.
        return f"{ContentType.objects.get_for_id(related.content_type_id).app_label}.{related.codename}"
    return str(related)


def _is_in_draft(instance: Model) -> bool:
    return isinstance(instance, Document) and hasattr(instance.collection, "draft")
