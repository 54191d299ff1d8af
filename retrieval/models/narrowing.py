"""Decide who may read a document whose metadata limit it to groups.

The metadata key is the setting DOCUMENT_GROUPS_KEY. Its value is a name or a list of names: groups, or `mail:ADDRESS`
for an account. Any other value hides the document from all. A document without the key has no limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db.models import F, Func, Q, TextField, Value
from django.db.models.fields.json import HasAnyKeys, HasKey, KeyTransform
from django.db.models.functions import Concat, Lower
from django.db.models.lookups import In

from core.user_types import AnyUser
from core.users import is_active, is_superuser, list_groups
from retrieval.models.collection import CURATING, Collection
from retrieval.types import ReaderRights

MAIL = "mail:"


def build_reader_name_from_address(address: str) -> str:
    return MAIL + address.strip().lower()


def _list_reader_names(user: AnyUser) -> list[str]:
    """Return the names of the user's groups, and `mail:` followed by each of the user's confirmed addresses."""
    groups = list_groups(user).exclude(name__startswith=MAIL).order_by().values_list("name", flat=True)
    confirmed = EmailAddress.objects.filter(user=user.pk, verified=True)
    named = Concat(Value(MAIL), Lower("email"), output_field=TextField())
    return sorted(groups.union(confirmed.order_by().values_list(named, flat=True)))


def build_reader_rights(user: AnyUser) -> tuple[ReaderRights, ...]:
    """Return the rights of ``user`` to read documents, in a tuple with one element.

    The tuple is empty for a superuser, who may read all documents.
    """
    if is_superuser(user):
        return ()
    if not is_active(user):
        return (ReaderRights(),)
    is_curator = user.pk is not None and user.is_staff and user.has_perm("retrieval.change_document")
    collections = Collection.objects.curated_by(user) if is_curator else Collection.objects.granted_to(user, *CURATING)
    return (
        ReaderRights(
            groups=tuple(_list_reader_names(user)),
            collections=tuple(collections.order_by("pk").values_list("pk", flat=True)),
        ),
    )


def build_group_restricted_condition(path: str = "") -> Q:
    return Q(HasKey(F(f"{path}metadata"), settings.DOCUMENT_GROUPS_KEY))


def build_readable_condition(readers: Sequence[ReaderRights], path: str = "") -> Q:
    """Return a condition that each of ``readers`` may read the document to which the lookup ``path`` leads."""
    condition = Q()
    for reader in readers:
        seen = ~build_group_restricted_condition(path)
        if reader.groups:
            named = KeyTransform(settings.DOCUMENT_GROUPS_KEY, f"{path}metadata")
            kind = Func(named, function="jsonb_typeof", output_field=TextField())
            # Only a list or a text can name groups. HasAnyKeys also matches the keys of an object, so objects are
            # excluded, and the document stays hidden.
            seen |= Q(In(kind, [Value("array"), Value("string")])) & Q(HasAnyKeys(named, list(reader.groups)))
        if reader.collections:
            seen |= Q(**{f"{path}collection__in": reader.collections})
        condition &= seen
    return condition
