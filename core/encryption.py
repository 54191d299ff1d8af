"""Encrypt secrets for storage with SECRET_KEY. SECRET_KEY_FALLBACKS can still decrypt."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import httpx2
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models, transaction
from django.utils.encoding import force_bytes

from core.exceptions import RagsiteError


class SecretUnreadable(RagsiteError):
    """An error: none of the site's keys decrypts the secret. An admin must enter it again."""


def encrypt(purpose: str, text: str) -> str:
    return _build_fernet(purpose).encrypt(text.encode()).decode()


def decrypt(purpose: str, token: str) -> str:
    try:
        return _build_fernet(purpose).decrypt(token.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable("It was encrypted with another SECRET_KEY: type it again.") from None


def _build_fernet(purpose: str) -> MultiFernet:
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    derived = [hashlib.sha256(f"ragsite.{purpose}:".encode() + force_bytes(key)).digest() for key in keys]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in derived])


def parse_url_origin(address: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a web address. Other text is returned as the host."""
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        return "", address, None
    return url.scheme, url.host or address.lower(), url.port or {"http": 80, "https": 443}.get(url.scheme)


class SecretHolder(models.Model):
    """Base class of rows with an encrypted ``secret``, which is sent to one destination, such as a server.

    Saving a changed destination removes the secret. Only ``set_secret`` stores a new one.
    """

    SECRET_PURPOSE: str
    secret: models.TextField[str, str]
    is_secret_given = was_secret_removed = False

    class Meta:
        abstract = True

    def save(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            stored = type(self)._default_manager.select_for_update(no_key=True).filter(pk=self.pk).first()
            if stored is not None and not self.is_secret_given:
                self.secret = stored.secret if stored.secret_destination == self.secret_destination else ""
                self.was_secret_removed = bool(stored.secret and not self.secret)
            if options.get("update_fields") is not None:
                options["update_fields"] = {*options["update_fields"], "secret"}
            super().save(*args, **options)
        self.is_secret_given = False

    @property
    def secret_destination(self) -> object:
        raise NotImplementedError

    def set_secret(self, text: str) -> None:
        self.secret = encrypt(self.SECRET_PURPOSE, text) if text else ""
        self.is_secret_given = True
