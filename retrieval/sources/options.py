"""Form fields and forms for the options of sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.encryption import SecretHolder, SecretUnreadable, decrypt
from retrieval.documents.drafts.editing import lock_collections_for_change
from retrieval.documents.formats import is_leftover_file
from retrieval.models import Source
from retrieval.sources.item_metadata import remove_imported_readers, restore_metadata_of_items
from retrieval.sources.network import resolve_host
from retrieval.sources.protocol import AddressRefused, SourceUnavailable, SourceUnreadable


class LinesField(forms.CharField):
    widget = forms.Textarea(attrs={"rows": 3})

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list | tuple) else value

    def run_validators(self, value: Any) -> None:
        for line in value:
            super().run_validators(line)


def check_server_address(server: str) -> None:
    """Raise ValidationError if the server is in the site's own network, and no setting allows this address."""
    try:
        resolve_host(urlsplit(server).hostname or server, 443)
    except AddressRefused as error:
        raise ValidationError(str(error)) from error
    except (SourceUnavailable, ValueError):
        return


class AddressInput(forms.URLInput):
    def __init__(self) -> None:
        super().__init__(attrs={"class": "vURLField"})


class WebAddressField(forms.URLField):
    """A form field for a web address without a password.

    If ``is_asked`` is true, the site will send requests to the address, so its server is checked.
    """

    widget = AddressInput

    def __init__(self, *, is_asked: bool = True, **kwargs: Any) -> None:
        validators = [check_server_address] if is_asked else []
        super().__init__(assume_scheme="https", max_length=1000, validators=validators, **kwargs)

    def clean(self, value: Any) -> str:
        address = str(super().clean(value))
        parts = urlsplit(address)
        if address and (parts.scheme not in ("http", "https") or parts.username or parts.password):
            raise ValidationError(_t("This must be an http or https address, without a name or a password in it."))
        return address


SECRET_HELP = _(
    "Encrypted, and never shown again. Empty: unchanged, or removed if the server, its port or its encryption changes."
)


class SecretField(forms.CharField):
    """A form field for a secret, which is stored encrypted and never shown. An empty field keeps the stored secret."""

    widget = forms.PasswordInput(attrs={"autocomplete": "new-password"})

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("help_text", SECRET_HELP)
        super().__init__(required=False, max_length=2000, strip=False, **kwargs)


def warn_about_removed_secret(request: HttpRequest, row: SecretHolder) -> None:
    if row.was_secret_removed:
        messages.warning(request, _t("The server changed, so the stored secret was removed. Enter it again."))


class SourceOptionsForm(forms.Form):
    include = LinesField(
        label=_("Only"), required=False, help_text=_("Patterns such as guides/* or *.pdf, one per line. Empty: all.")
    )
    exclude = LinesField(label=_("Not"), required=False, help_text=_("Patterns of names to leave out, one per line."))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        shared = {"base_url", "username", "password", "include", "exclude", "takes_readers", "reader_names"}
        self.order_fields([name for name in self.fields if name not in shared])


class SourceAccountForm(forms.Form):
    username = forms.CharField(label=_("User name"), required=False, max_length=300)
    password = SecretField(label=_("Password or token"))


class BaseUrlForm(forms.Form):
    base_url = WebAddressField(
        label=_("Web address of the files"),
        required=False,
        is_asked=False,
        help_text=_("If readers can open the files on the web: the path of each file is added to this address."),
    )


def store_options(source: Source, form: type[forms.Form], options: Mapping[str, Any]) -> None:
    """Set the form's ``options`` in the source. An empty secret keeps the stored one if the server is the same."""
    names = {name for name, field in form.base_fields.items() if isinstance(field, SecretField)}
    given = {name: options[name] for name in names if options.get(name)}
    source.options = {name: value for name, value in options.items() if name not in names}
    if given:
        others = _read_stored_secrets(source) if len(names) > 1 else {}
        source.set_secret(json.dumps({**others, **given}))


def _read_stored_secrets(source: Source) -> dict[str, str]:
    stored = Source.objects.filter(pk=source.pk).first()
    if stored is None or stored.secret_destination != source.secret_destination:
        return {}
    try:
        return _decrypt_secrets(stored)
    except SourceUnreadable:
        return {}


def read_all_options(source: Source) -> dict[str, object]:
    return {**source.options, **_decrypt_secrets(source)}


def _decrypt_secrets(source: Source) -> dict[str, str]:
    if not source.secret:
        return {}
    try:
        secrets: dict[str, str] = json.loads(decrypt(source.SECRET_PURPOSE, source.secret))
    except SecretUnreadable as error:
        raise SourceUnreadable(_t("The password of this source cannot be read. %s") % error) from error
    return secrets


def is_included(name: str, options: Mapping[str, Any]) -> bool:
    """Return whether the source's patterns allow the item's name, and it is no hidden or backup file.

    In a pattern, `*` also matches `/`.
    """
    include, exclude = options.get("include") or [], options.get("exclude") or []
    wanted = not include or any(fnmatchcase(name, pattern) for pattern in include)
    return wanted and not is_leftover_file(name) and not any(fnmatchcase(name, pattern) for pattern in exclude)


# Documents keep metadata keys that the source does not have.
_GIVE = """
    WITH RECURSIVE family AS (
        SELECT id FROM retrieval_document WHERE origin_id = %s AND collection_id = %s
        UNION ALL
        SELECT member.id FROM retrieval_document AS member JOIN family ON member.parent_id = family.id
    )
    UPDATE retrieval_document AS document
    SET metadata = (document.metadata - %s::text[]) || %s::jsonb, updated_at = now()
    FROM family WHERE document.id = family.id
"""


def save_source(source: Source) -> None:
    """Save the source, and copy changed metadata to its documents.

    Raises: DocumentRejected if the collection's documents may not be changed.
    """
    with transaction.atomic():
        is_new = source.pk is None
        before = lock_source_metadata(source)
        source.save()
        has_readers = (
            not is_new and not source.has_readers_by_source and source.items.filter(readers__isnull=False).exists()
        )
        if is_new or (before == source.metadata and not has_readers):
            return
        with lock_collections_for_change(source.collection_id), connection.cursor() as cursor:
            if before != source.metadata:
                cursor.execute(_GIVE, (source.pk, source.collection_id, list(before), json.dumps(source.metadata)))
                restore_metadata_of_items(source, before)
            if has_readers:
                remove_imported_readers(source)


def lock_source_metadata(source: Source) -> dict[str, object]:
    """Return the source's metadata, and lock its row, so that no run uses outdated metadata."""
    rows = Source.objects.select_for_update(no_key=True).filter(pk=source.pk)
    return rows.values_list("metadata", flat=True).first() or {}
