from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import httpcore2
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from core.encryption import SecretHolder, decrypt, parse_url_origin
from core.language_model.chat_endpoint import ChatEndpoint
from retrieval.sources.network import resolve_host
from retrieval.sources.protocol import SourceUnavailable


def _resolve_model_host(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses of a host.

    Raises: AddressRefused if the site may not connect; httpcore2.ConnectError, after which the call is repeated.
    """
    try:
        return resolve_host(host, port)
    except SourceUnavailable as error:
        raise httpcore2.ConnectError(str(error)) from error


class LanguageModel(SecretHolder):
    """A language model that an admin has added, in addition to the model in the settings.

    ``secret`` is the encrypted API key. Prices are per million tokens.
    """

    SECRET_PURPOSE = "chat.language_models"  # noqa: S105 (the name of a purpose)

    name = models.CharField(
        _("name"),
        max_length=60,
        unique=True,
        validators=[RegexValidator(r"\A[A-Za-z0-9][A-Za-z0-9._:-]*\Z", _("Letters, digits, dots and hyphens only."))],
        help_text=_("Shown to readers and used in the API. Letters, digits, dots and hyphens."),
    )
    base_url = models.CharField(_("address"), max_length=1000)
    model = models.CharField(_("model"), max_length=200, help_text=_("The name that its server uses for it."))
    secret = models.TextField(blank=True, editable=False)
    context_tokens = models.PositiveIntegerField(
        _("context tokens"),
        default=16000,
        validators=[MinValueValidator(1000)],
        help_text=_("The largest number of tokens of a prompt and its answer together."),
    )
    price_prompt = models.FloatField(
        _("price of tokens read"),
        default=0,
        validators=[MinValueValidator(0)],
        help_text=_("Per million tokens. All prices must have the same currency; budgets use them."),
    )
    price_completion = models.FloatField(
        _("price of tokens written"), default=0, validators=[MinValueValidator(0)], help_text=_("Per million tokens.")
    )
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="+",
        verbose_name=_("groups"),
        help_text=_("Who may choose it. Empty: everybody who may ask."),
    )
    is_default = models.BooleanField(
        _("default"), default=False, help_text=_("Used if no other model is chosen. Only one model can be the default.")
    )
    is_enabled = models.BooleanField(_("enabled"), default=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("language model")
        verbose_name_plural = _("language models")

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        with transaction.atomic():
            super().save(*args, **kwargs)
            if self.is_default:
                LanguageModel.objects.exclude(pk=self.pk).update(is_default=False)

    @property
    def endpoint(self) -> ChatEndpoint:
        """The server and model to call. A server in a private network is refused, unless the settings name it.

        Raises: SecretUnreadable, LanguageModelMisconfigured.
        """
        return ChatEndpoint(
            self.base_url, self.api_key, self.model, None if self.is_on_server_of_settings else _resolve_model_host
        )

    @property
    def is_on_server_of_settings(self) -> bool:
        return urlsplit(self.base_url).netloc == urlsplit(settings.OPENAI_BASE_URL).netloc

    @property
    def api_key(self) -> str:
        """The decrypted key. Raises: SecretUnreadable."""
        return decrypt(self.SECRET_PURPOSE, self.secret) if self.secret else ""

    @api_key.setter
    def api_key(self, key: str) -> None:
        self.set_secret(key)

    @property
    def secret_destination(self) -> object:
        return parse_url_origin(self.base_url)


class ModelTrial(models.Model):
    """A trial: ``uses_functions`` says whether the model calls functions correctly; None while the trial runs."""

    model = models.CharField(max_length=500, unique=True)
    uses_functions = models.BooleanField(null=True)
    tried_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.model
