"""Read records by a connector of Airbyte's protocol. Each record becomes a document."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.html import escape, strip_tags
from django.utils.text import format_lazy, slugify
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from core.user_types import AnyUser
from core.users import is_superuser
from retrieval.models import RegisteredConnector, Source
from retrieval.sources.airbyte.calls import ConnectorCommandRunner, StreamRecord
from retrieval.sources.airbyte.connector_process import TookTooLong
from retrieval.sources.airbyte.programs import check_connectors_allowed
from retrieval.sources.airbyte.reading import ReadProgress, hash_setup
from retrieval.sources.airbyte.spec_forms import build_config, build_fields
from retrieval.sources.airbyte.streams import (
    DAYS_BETWEEN_FULL,
    ChosenStream,
    add_option_prefix,
    build_days_field,
    build_incremental_fields,
    can_read_changes,
    check_cursor_fields,
    check_reader_imports,
    drop_options_of_unchosen_streams,
    find_stream,
    is_deleted,
    list_chosen_stream_names,
    read_stream_name,
    select_stream_options,
)
from retrieval.sources.kinds.wikis import build_page
from retrieval.sources.options import LinesField, SecretField
from retrieval.sources.protocol import (
    Connector,
    FetchedItem,
    ItemDeleted,
    ItemReaders,
    RemoteItem,
    RunAttemptTimedOut,
    SetupObstacle,
    SourceUnavailable,
    SourceUnreadable,
)
from retrieval.sources.reader_names import ReadersBySourceForm

SAMPLES = 3
MOST_SAMPLES = 9
# An attempt ends after this time or number of items. The next one continues from the last STATE.
INCREMENTAL_SECONDS = 6 * 60.0
PART_ITEMS = 20_000
_SAMPLE_CHARACTERS = 1000
_FORMATS = [("html", _("HTML")), ("md", _("Markdown")), ("txt", _("plain text"))]
# Common names of fields by their purpose, which the form proposes for a new stream.
_USUAL = {
    "title_fields": ("title", "name", "subject", "summary", "fields.summary", "key"),
    "text_fields": ("body", "content", "text", "description", "html", "renderedFields.description"),
    "url_field": ("html_url", "web_url", "permalink", "url", "link", "href"),
    "changed_field": ("updated_at", "last_edited_time", "modified", "updated", "modified_at", "date", "created_at"),
}


class ConnectorOptions(forms.Form):
    """The form for the settings of a connector and for its streams.

    ``spec`` is the JSON Schema of the settings. ``groups`` are the form's sections, as label and names of fields.
    """

    spec: Mapping[str, Any] = {}
    found: Mapping[str, Any] = {}
    groups: Sequence[tuple[str, list[str]]] = ()

    connector = forms.CharField(label=_("Connector"), max_length=40)

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean() or {}
        instance = getattr(self, "instance", None)
        is_saved = instance is not None and instance.pk is not None
        _config, missing = build_config(self.spec, cleaned)
        for name in missing:
            is_kept = is_saved and isinstance(self.fields.get(name), SecretField)
            if name in self.fields and name not in self.errors and not is_kept:
                self.add_error(name, ValidationError(_t("This field is required.")))
        if "full_days" in self.fields and "full_days" not in self.errors:
            cleaned["full_days"] = cleaned.get("full_days") or DAYS_BETWEEN_FULL
        for name in list_chosen_stream_names(cleaned):
            given = select_stream_options(cleaned, name)
            if not (given.get("key_fields") and given.get("text_fields")):
                stream = find_stream(self.found, name)
                cleaned.update(
                    add_option_prefix(name, _propose_options(stream, {**_propose_initial_options(stream), **given}))
                )
        for field, error in [*check_cursor_fields(self.found, cleaned), *check_reader_imports(cleaned)]:
            self.add_error(field if field in self.fields else None, error)
        return drop_options_of_unchosen_streams(cleaned)


def _propose_initial_options(stream: Mapping[str, Any]) -> dict[str, Any]:
    return {name: field.initial for name, field in build_incremental_fields(stream).items()}


def _propose_options(stream: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    fields = stream.get("fields") or []
    keys = stream.get("source_defined_primary_key") or []
    named = {".".join(map(str, each)) if isinstance(each, list) else str(each): None for each in keys}
    proposed: dict[str, Any] = {
        "key_fields": [*named] or [name for name in ("id", "uuid", "key") if name in fields][:1]
    }
    for option, usual in _USUAL.items():
        name = next((each for each in usual if each in fields), "")
        proposed[option] = ([name] if name else []) if option.endswith("fields") else name
    if cursor := stream.get("default_cursor_field"):
        proposed["changed_field"] = ".".join(map(str, cursor))
    return {**given, **{option: given.get(option) or value for option, value in proposed.items()}}


def _build_stream_fields(found: Mapping[str, Any], chosen: Sequence[str]) -> dict[str, forms.Field]:
    names = dict.fromkeys([*map(read_stream_name, found["streams"]), *chosen])
    fields: dict[str, forms.Field] = {
        "streams": forms.MultipleChoiceField(
            label=_("Streams"),
            choices=[(name, name) for name in names],
            required=False,
            widget=forms.CheckboxSelectMultiple,
            help_text=_("Choose and save: the usual fields are filled in below, and can be changed afterwards."),
        )
    }
    if any(map(can_read_changes, found["streams"])):
        fields["full_days"] = build_days_field()
    return fields


def _build_mapping_fields(stream: Mapping[str, Any]) -> dict[str, forms.Field]:
    known = ", ".join(stream.get("fields") or [])
    said = escape(_t("Its records have: %s.") % known[:3000]) if known else ""
    explained = _("Fields that never change, such as id, one per line.")
    return {
        "key_fields": LinesField(
            label=_("Identifier"), required=False, help_text=format_lazy("{} {}", explained, said)
        ),
        "title_fields": LinesField(label=_("Title"), required=False, help_text=_("The first of them that has a text.")),
        "text_fields": LinesField(
            label=_("Text"),
            required=False,
            help_text=_("Fields, one per line; their texts are joined. A field in another: fields.description."),
        ),
        "text_format": forms.ChoiceField(label=_("Format of the text"), choices=_FORMATS, initial="html"),
        "url_field": forms.CharField(label=_("Web address"), required=False, max_length=300),
        "changed_field": forms.CharField(
            label=_("Changed at"),
            required=False,
            max_length=300,
            help_text=_("Becomes the metadata changed of each document."),
        ),
        "metadata_fields": LinesField(
            label=_("Metadata of records"),
            required=False,
            help_text=_("Fields, one per line, or name=field. The metadata of the source come before them."),
        ),
        "readers_field": forms.CharField(
            label=_("Readers"),
            required=False,
            max_length=300,
            help_text=_(
                "The field that names who may read the record: groups and mail addresses, a list, or with commas."
            ),
        ),
    }


def list_usable_connectors(user: AnyUser, name: str = "") -> list[RegisteredConnector]:
    """Return the installed connectors that the user may use in sources; with ``name``, only this one."""
    if not settings.SOURCE_CONNECTORS:
        return []
    ready = RegisteredConnector.objects.filter(state=RegisteredConnector.State.READY)
    named = ready.filter(name=name) if name else ready
    return list(named if is_superuser(user) else named.filter(is_for_curators=True))


@dataclass(frozen=True, slots=True)
class _ItemByteRange:
    item: RemoteItem
    start: int
    length: int


class ConnectorSource(Connector):
    name = "connector"
    label = _("Connector")
    description = _("Records of a service, read by a connector of Airbyte's protocol that a superuser registered.")
    form = ConnectorOptions
    has_address = False
    tells_readers = True

    @classmethod
    def find_setup_obstacles(cls) -> list[SetupObstacle]:
        if not settings.SOURCE_CONNECTORS:
            said = _t("This site runs no connectors of others. Ask an administrator of the server.")
            return [SetupObstacle(said, "SOURCE_CONNECTORS")]
        if not RegisteredConnector.objects.filter(state=RegisteredConnector.State.READY).exists():
            return [SetupObstacle(_t("No connector is installed yet. Ask a superuser to register one."), "")]
        return []

    @classmethod
    def get_form_class(cls, options: Mapping[str, Any], found: Mapping[str, Any]) -> type[forms.Form]:
        chosen = RegisteredConnector.objects.filter(name=options.get("connector") or "").first()
        spec = chosen.spec if chosen is not None else {}
        shown = forms.CharField(label=_("Connector"), initial=options.get("connector"), disabled=True)
        fields: dict[str, Any] = {"connector": shown, **build_fields(spec)}
        groups = []
        if found.get("streams"):
            fields |= _build_stream_fields(found, list_chosen_stream_names(options)) | ReadersBySourceForm.base_fields
            for name in list_chosen_stream_names(options):
                stream = find_stream(found, name)
                own = add_option_prefix(name, {**_build_mapping_fields(stream), **build_incremental_fields(stream)})
                groups.append((_t("Stream %s") % name, list(own)))
                fields |= own
        return type("ConnectorForm", (ConnectorOptions,), {"spec": spec, "found": found, "groups": groups, **fields})

    def __init__(self, options: Mapping[str, Any], number: int) -> None:
        super().__init__(options, number)
        check_connectors_allowed()
        chosen = RegisteredConnector.objects.filter(name=options.get("connector") or "").first()
        if chosen is None:
            raise SourceUnreadable(_t("The connector %s is no longer registered.") % options.get("connector"))
        fields = build_fields(chosen.spec)
        secrets = [
            str(options[name]) for name, field in fields.items() if isinstance(field, SecretField) and options.get(name)
        ]
        try:
            config, missing = build_config(chosen.spec, options)
        except ValidationError as error:
            raise SourceUnreadable("; ".join(error.messages)) from error
        if missing:
            labels = [str(fields[name].label) if name in fields else name for name in missing]
            raise SourceUnreadable(_t("Settings are missing: %s.") % ", ".join(labels))
        self._calls = ConnectorCommandRunner(chosen, config, secrets)
        self._setup = partial(hash_setup, chosen, config)
        self._streams: dict[str, ChosenStream] = {}
        self._places: dict[str, _ItemByteRange] = {}
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def notes_for_run_log(self) -> list[str]:
        return [*dict.fromkeys(self._calls.notes)]

    def list_items(self) -> Iterator[RemoteItem]:
        """Read all records, store their texts in a temporary file, and yield their items.

        If the connector fails midway, an incremental source yields the items read so far. Any other source raises
        SourceUnavailable, because documents that are missing in its list would be deleted.
        """
        if self.is_preview:
            self._calls.check_settings()
            found: dict[str, Any] = {"streams": self._calls.discover_streams()}
            Source.objects.filter(pk=self.number).update(found=found)
        else:
            found = Source.objects.values_list("found", flat=True).get(pk=self.number)
        names = list_chosen_stream_names(self.options)
        if not names and self.is_preview:
            total = len(found["streams"])
            said = ngettext("The settings work. There is %d stream.", "The settings work. There are %d streams.", total)
            self._calls.notes.insert(0, " ".join([said % total, _t("Choose streams below, and save.")]))
            self.lists_everything = False
            return
        if not names:
            raise SourceUnreadable(_t("Choose a stream: after a preview, the form of this source lists them."))
        self._streams = {name: self._choose_stream(found, name) for name in names}
        streams, days = self._streams.values(), self.options.get("full_days")
        self._reading = ReadProgress(self.number, self.run, self._setup(streams), streams, days)
        self.lists_changes = self._reading.is_incremental
        self._read()
        for place in self._places.values():
            yield place.item

    def _choose_stream(self, found: Mapping[str, Any], name: str) -> ChosenStream:
        stream, options = find_stream(found, name), select_stream_options(self.options, name)
        if not stream:
            raise SourceUnreadable(_t("The connector has no stream %s.") % name)
        if not options.get("key_fields") or not options.get("text_fields"):
            raise SourceUnreadable(_t("Name the fields of the identifier and of the text of %s first.") % name)
        return ChosenStream(name, stream, options)

    def _read(self) -> None:
        number = 0
        limits = {"seconds": INCREMENTAL_SECONDS} if self.lists_changes else {}
        try:
            for message in self._calls.read_records(self._streams.values(), self._reading.state, **limits):
                if isinstance(message, StreamRecord):
                    number += 1
                    self._store_record(self._streams[message.stream], number, message.data)
                else:
                    self._reading.add_checkpoint(message, len(self._places))
                    if self._has_read_enough(len(self._places)):
                        self.broke_off = RunAttemptTimedOut()
                        return
        except SourceUnavailable as error:
            if not self._reading.has_advanced:
                raise
            is_slow = isinstance(error, TookTooLong)
            self.broke_off = RunAttemptTimedOut() if is_slow and not self.is_preview else error

    def _has_read_enough(self, items: int) -> bool:
        return items >= PART_ITEMS and not self.is_preview and self._reading.has_advanced

    def is_deletion(self, key: str, last_run: int) -> bool:
        stream = _unescape(key.partition("/")[0])
        return stream not in self._streams or self._reading.is_deletion(stream, last_run)

    def store_progress(self, saved: int, *, is_all: bool) -> None:
        if self._streams:
            self._reading.store_connector_state(saved, is_all=is_all, is_complete=self.broke_off is None)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem:
        place = self._places[item.key]
        self._file.seek(place.start)
        kept = json.loads(self._file.read(place.length))
        if kept["is_deleted"]:
            raise ItemDeleted(_t("it is marked as deleted"))
        if not kept["body"].strip():
            return FetchedItem(None, reason=_t("the fields of its text are empty"))
        return FetchedItem(self._build_item_file(kept), metadata=kept["metadata"])

    def _store_record(self, stream: ChosenStream, number: int, record: Mapping[str, Any]) -> None:
        options = stream.options
        parts = [_read_text(record, path) for path in options["key_fields"]]
        if not all(parts):
            names = ", ".join(options["key_fields"])
            raise SourceUnreadable(
                _t("Record %(n)d has no %(names)s: choose another identifier.") % {"n": number, "names": names}
            )
        key = "/".join(_escape(part) for part in [stream.name, *parts])
        titles = (_read_text(record, path) for path in options.get("title_fields") or [])
        title = " ".join(next(filter(None, titles), "").split())[:300] or parts[0][:300]
        kept = {
            "title": title,
            "body": "\n\n".join(filter(None, (_read_text(record, path) for path in options["text_fields"]))),
            "url": _read_address(record, options.get("url_field") or ""),
            "metadata": _read_metadata(record, options),
            "format": options.get("text_format") or "html",
            "is_deleted": is_deleted(_find_values(record, options.get("deleted_field") or " ")),
        }
        line = json.dumps(kept, sort_keys=True).encode()
        start = self._file.seek(0, 2)
        self._file.write(line)
        name = f"{slugify(title)[:100] or 'record'}.{kept['format']}"
        readers = (
            _read_item_readers(record, options.get("readers_field") or "")
            if self.options.get("takes_readers")
            else None
        )
        fingerprint = hashlib.sha256(line + repr(readers).encode()).hexdigest()
        item = RemoteItem(key, name, fingerprint, url=str(kept["url"]), title=title, is_entry=True, readers=readers)
        self._places[key] = _ItemByteRange(item, start, len(line))
        if self.is_preview and not kept["is_deleted"] and self._needs_sample(stream.name):
            body = str(kept["body"])[: 10 * _SAMPLE_CHARACTERS]
            shown = strip_tags(body) if kept["format"] == "html" else body
            self.samples.append({**kept, "body": shown.strip()[:_SAMPLE_CHARACTERS], "key": key, "stream": stream.name})

    def _needs_sample(self, stream: str) -> bool:
        of_stream = sum(sample["stream"] == stream for sample in self.samples)
        return of_stream < SAMPLES and len(self.samples) < MOST_SAMPLES

    def _build_item_file(self, kept: Mapping[str, str]) -> bytes:
        title, body = kept["title"], kept["body"]
        if kept["format"] == "html":
            return build_page(title, body).data or b""
        return f"# {title}\n\n{body}\n".encode() if kept["format"] == "md" else f"{title}\n\n{body}\n".encode()


def _find_values(value: Any, path: str) -> list[Any]:
    """Return the record's values at a path such as fields.description, also from lists."""
    if isinstance(value, list):
        return [found for each in value for found in _find_values(each, path)]
    if not path:
        return [] if value is None else [value]
    if not isinstance(value, dict):
        return []
    if path in value:
        return _find_values(value[path], "")
    first, _dot, rest = path.partition(".")
    return _find_values(value.get(first), rest) if rest else []


def _read_text(record: Mapping[str, Any], path: str) -> str:
    texts = (
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in _find_values(record, path)
    )
    # PostgreSQL cannot store NUL characters, and UTF-8 no lone surrogates.
    return "\n".join(texts).replace("\0", "").encode("utf-8", "replace").decode().strip()


def _read_item_readers(record: Mapping[str, Any], path: str) -> ItemReaders:
    if not path:
        return ItemReaders(unread=_t("name the field of the readers"))
    values = [str(each) for each in _find_values(record, path) if isinstance(each, str | int)]
    named = [name for value in values for each in value.split(",") if (name := _read_text({"x": each}, "x"))]
    return ItemReaders(
        groups=tuple(name for name in named if "@" not in name), users=tuple(name for name in named if "@" in name)
    )


def _read_address(record: Mapping[str, Any], path: str) -> str:
    address = _read_text(record, path) if path else ""
    return address if address.startswith(("http://", "https://")) and len(address.split()) == 1 else ""


def _read_fact(record: Mapping[str, Any], path: str) -> object:
    values = [each for each in _find_values(record, path) if isinstance(each, str | int | float | bool)]
    facts = [
        each.replace("\0", "").encode("utf-8", "replace").decode()[:500] if isinstance(each, str) else each
        for each in values
    ]
    return facts[:50] if len(facts) > 1 else facts[0] if facts else None


def _read_metadata(record: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    named = [line.partition("=") for line in options.get("metadata_fields") or []]
    fields = {name.strip(): (path or name).strip() for name, _sign, path in named}
    if options.get("changed_field"):
        fields["changed"] = options["changed_field"]
    facts = {name: _read_fact(record, path) for name, path in fields.items() if name}
    if facts.get(settings.DOCUMENT_GROUPS_KEY, "") is None:
        # If a record has no groups, no group may read its document.
        facts[settings.DOCUMENT_GROUPS_KEY] = []
    return facts


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
