"""How a key is made. It is shown to its owner once; the site keeps its SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.crypto import get_random_string

from ragsite.models import ApiKey
from retrieval.models import Collection
from retrieval.rights.key_limits import Scope

PREFIX = "rs_"
PUBLIC_CHARACTERS = 8
# Of 62 letters and digits: 256 random bits.
SECRET_CHARACTERS = 43


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key, and the text that its owner gets to see this once."""

    key: ApiKey
    secret: str


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic
def issue_key(
    user: Any,
    name: str,
    scopes: Iterable[Scope],
    *,
    collections: Iterable[Collection] | None = None,
    expires_at: datetime | None = None,
    rate: str = "",
) -> IssuedKey:
    """A new key of ``user``. With ``collections`` it reaches those alone, as far as the user may read them."""
    key = ApiKey(
        user=user,
        name=name,
        scopes=sorted(scopes),
        is_limited=collections is not None,
        expires_at=expires_at,
        rate=rate,
    )
    secret = give_secret(key)
    key.save()
    if collections is not None:
        key.collections.set(collections)
    return IssuedKey(key, secret)


def give_secret(key: ApiKey) -> str:
    """The secret of a key that is about to be saved for the first time."""
    key.public_id = f"{PREFIX}{get_random_string(PUBLIC_CHARACTERS)}"
    secret = f"{key.public_id}_{get_random_string(SECRET_CHARACTERS)}"
    key.digest = digest_of(secret)
    return secret
