"""Secrets at rest: encrypted with SECRET_KEY, and still read with the keys of SECRET_KEY_FALLBACKS."""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.encoding import force_bytes

from retrieval.exceptions import RetrievalError


class SecretUnreadable(RetrievalError):
    """None of the site's keys opens what was encrypted. For the admin who has to type it again."""


def encrypt(purpose: str, text: str) -> str:
    """A token that only :func:`decrypt` with the same purpose opens."""
    return _fernet(purpose).encrypt(text.encode()).decode()


def decrypt(purpose: str, token: str) -> str:
    """Raises: SecretUnreadable."""
    try:
        return _fernet(purpose).decrypt(token.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable("It was encrypted with another SECRET_KEY: type it again.") from None


def _fernet(purpose: str) -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    derived = [hashlib.sha256(f"ragsite.{purpose}:".encode() + force_bytes(key)).digest() for key in keys]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in derived])
