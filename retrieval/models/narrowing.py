"""Find documents that their metadata limit to groups.

The metadata key is the setting DOCUMENT_GROUPS_KEY; its value is the name of a group, or a list of names. Any other
value hides the document. All readers of the collection see a document without the key. The name `mail:` with an address
behind it admits the account that has confirmed this address.
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
from retrieval.types import Reader

MAIL = "mail:"


def name_reader(address: str) -> str:
    """Return the name that admits the account with this mail address."""
    return MAIL + address.strip().lower()


def _list_names(user: AnyUser) -> list[str]:
    """Return the names that admit the user: groups, and confirmed addresses. No group admits like an address."""
    groups = list_groups(user).exclude(name__startswith=MAIL).order_by().values_list("name", flat=True)
    confirmed = EmailAddress.objects.filter(user=user.pk, verified=True)
    named = Concat(Value(MAIL), Lower("email"), output_field=TextField())
    return sorted(groups.union(confirmed.order_by().values_list(named, flat=True)))


def build_readers(user: AnyUser) -> tuple[Reader, ...]:
    """Return ``user`` as a reader of restricted documents; empty for a superuser, who sees all.

    Curators see all documents of a collection, because they could remove the restrictions.
    """
    if is_superuser(user):
        return ()
    if not is_active(user):
        return (Reader(),)
    is_curator = user.pk is not None and user.is_staff and user.has_perm("retrieval.change_document")
    collections = Collection.objects.curated_by(user) if is_curator else Collection.objects.granted_to(user, *CURATING)
    return (
        Reader(
            groups=tuple(_list_names(user)),
            collections=tuple(collections.order_by("pk").values_list("pk", flat=True)),
        ),
    )


def is_narrowed(path: str = "") -> Q:
    return Q(HasKey(F(f"{path}metadata"), settings.DOCUMENT_GROUPS_KEY))


def build_seen_condition(readers: Sequence[Reader], path: str = "") -> Q:
    """Return the condition that each reader may see the document at ``path``."""
    condition = Q()
    for reader in readers:
        seen = ~is_narrowed(path)
        if reader.groups:
            named = KeyTransform(settings.DOCUMENT_GROUPS_KEY, f"{path}metadata")
            kind = Func(named, function="jsonb_typeof", output_field=TextField())
            # HasAnyKeys would also find the names among the keys of an object.
            seen |= Q(In(kind, [Value("array"), Value("string")])) & Q(HasAnyKeys(named, list(reader.groups)))
        if reader.collections:
            seen |= Q(**{f"{path}collection__in": reader.collections})
        condition &= seen
    return condition
