"""Choose streams (kinds of records) of a connector, and how each is read.

The names of a stream's options begin with a prefix (`build_option_prefix`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

FULL, INCREMENTAL = "full_refresh", "incremental"
DAYS_BETWEEN_FULL = 7
_DELETED_FIELDS = ("_ab_cdc_deleted_at", "deleted_at", "is_deleted", "deleted")
_FALSE = ("", "0", "false", "no", "none", "null")


def join_name(namespace: object, name: object) -> str:
    return f"{namespace}.{name}" if namespace else str(name)


def read_stream_name(stream: Mapping[str, Any]) -> str:
    return join_name(stream.get("namespace"), stream["name"])


def find_stream(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next((each for each in found.get("streams") or [] if read_stream_name(each) == name), {})


def list_chosen_stream_names(options: Mapping[str, Any]) -> list[str]:
    return [str(name) for name in options.get("streams") or []]


def build_option_prefix(name: str) -> str:
    """Return the prefix of the stream's option names. It is unique and can be part of an HTML id."""
    return f"of.{quote(name, safe='').replace('.', '%2E')}."


def add_option_prefix(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{build_option_prefix(name)}{option}": value for option, value in options.items()}


def select_stream_options(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    prefix = build_option_prefix(name)
    return {option.removeprefix(prefix): value for option, value in options.items() if option.startswith(prefix)}


def drop_options_of_unchosen_streams(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source's own options and the options of chosen streams."""
    chosen = tuple(map(build_option_prefix, list_chosen_stream_names(options)))
    return {
        option: value for option, value in options.items() if not option.startswith("of.") or option.startswith(chosen)
    }


def can_read_changes(stream: Mapping[str, Any]) -> bool:
    return INCREMENTAL in (stream.get("supported_sync_modes") or [])


@dataclass(frozen=True, slots=True)
class ChosenStream:
    """A stream that a source reads from its connector.

    ``stream`` is the connector's description, ``options`` are the source's options for the stream.
    """

    name: str
    stream: Mapping[str, Any]
    options: Mapping[str, Any]

    @property
    def is_incremental(self) -> bool:
        return can_read_changes(self.stream) and self.options.get("sync_mode") == INCREMENTAL

    def build_catalog_entry(self) -> dict[str, Any]:
        """Return what the connector shall read of this stream, as a ConfiguredAirbyteStream."""
        described = {name: value for name, value in self.stream.items() if name != "fields"}
        described["supported_sync_modes"] = described.get("supported_sync_modes") or [FULL]
        chosen: dict[str, Any] = {
            "stream": described,
            "sync_mode": INCREMENTAL if self.is_incremental else FULL,
            "destination_sync_mode": "append_dedup" if self.is_incremental else "overwrite",
        }
        if keys := described.get("source_defined_primary_key"):
            chosen["primary_key"] = keys
        if cursor := _split(self.options.get("cursor_field")) or described.get("default_cursor_field"):
            chosen["cursor_field"] = cursor
        return chosen


def _split(path: object) -> list[str]:
    return str(path).split(".") if path else []


def is_deleted(values: list[Any]) -> bool:
    """Return whether a field marks its record as deleted, by a value such as a time, true or 1."""
    return any(value and str(value).strip().lower() not in _FALSE for value in values)


def build_incremental_fields(stream: Mapping[str, Any]) -> dict[str, forms.Field]:
    """Return the form fields for incremental reading of the stream; none if it cannot be read incrementally."""
    if not can_read_changes(stream):
        return {}
    modes = [(FULL, _("everything in each run")), (INCREMENTAL, _("only what changed since the last run"))]
    fields: dict[str, forms.Field] = {
        "sync_mode": forms.ChoiceField(label=_("Read"), choices=modes, initial=FULL, required=False)
    }
    if not stream.get("source_defined_cursor"):
        fields["cursor_field"] = forms.CharField(
            label=_("Field of changes"),
            required=False,
            max_length=300,
            initial=".".join(map(str, stream.get("default_cursor_field") or [])),
            help_text=_("Grows with each change, such as updated_at. To read only what changed."),
        )
    fields["deleted_field"] = forms.CharField(
        label=_("Field of deletions"),
        required=False,
        max_length=300,
        initial=next((name for name in _DELETED_FIELDS if name in (stream.get("fields") or [])), ""),
        help_text=_("A time or true there removes the document. Otherwise removals are seen when everything is read."),
    )
    return fields


def build_days_field() -> forms.Field:
    return forms.IntegerField(
        label=_("Read everything every so many days"),
        min_value=1,
        max_value=365,
        initial=DAYS_BETWEEN_FULL,
        required=False,
        help_text=_("For streams of which only changes are read: then documents of missing records are removed."),
    )


def check_cursor_fields(found: Mapping[str, Any], cleaned: Mapping[str, Any]) -> Iterator[tuple[str, ValidationError]]:
    """Yield an error for each incremental stream without a cursor field."""
    for name in list_chosen_stream_names(cleaned):
        stream, options = find_stream(found, name), select_stream_options(cleaned, name)
        has_cursor = stream.get("source_defined_cursor") or options.get("cursor_field")
        if options.get("sync_mode") == INCREMENTAL and not has_cursor:
            said = _t("To read only what changed, name the field that grows with each change.")
            yield f"{build_option_prefix(name)}cursor_field", ValidationError(said)


def check_reader_imports(cleaned: Mapping[str, Any]) -> Iterator[tuple[str, ValidationError]]:
    """Yield an error for each incremental stream of a source from which rights to read are imported.

    The withdrawal of a right need not change the record, so incremental reading would miss it.
    """
    for name in list_chosen_stream_names(cleaned):
        if cleaned.get("takes_readers") and select_stream_options(cleaned, name).get("sync_mode") == INCREMENTAL:
            said = _t("Choose everything, to take over who may read: a withdrawn right need not change its record.")
            yield f"{build_option_prefix(name)}sync_mode", ValidationError(said)
