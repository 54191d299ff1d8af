"""The interface of all kinds of sources, and their exceptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self
from urllib.parse import quote

from django import forms
from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _t

from core.exceptions import RagsiteError


class SourceUnreadable(RagsiteError):
    """An error: the source cannot be read as configured, and a retry will not help. The message is for the admin."""


class AddressRefused(SourceUnreadable):
    """An error: an address is in the site's own network, and no setting allows it."""


class SourceUnavailable(RagsiteError):
    """An error: the source does not respond now. The run is tried again, after ``pause`` if it is not None."""

    def __init__(self, message: str, pause: timedelta | None = None) -> None:
        super().__init__(message)
        self.pause = pause


class RunAttemptTimedOut(RagsiteError):
    """An error: the time of one attempt at a run is over."""


class ItemFailed(RagsiteError):
    """An error: one item could not be read. The message is for the admin."""


class ItemRejected(ItemFailed):
    """An error: the item cannot become a document. It is read again only after it has changed."""


class ItemGone(RagsiteError):
    """An error: an item does not exist, although the source lists it or another item links to it."""


class ItemDeleted(ItemGone):
    """An error: the item was deleted in the source. The message is for the log of the run."""


@dataclass(frozen=True, slots=True)
class ItemReaders:
    """The groups and users that may read an item in its source, by the source's names or mail addresses.

    If the list of readers could not be read, ``unread`` is the reason.
    """

    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    is_everybody: bool = False
    unread: str = ""


@dataclass(frozen=True, slots=True)
class RemoteItem:
    """An item that a source lists, such as a page or file.

    - ``key`` identifies the item and never changes.
    - ``name`` is a path with an extension.
    - ``is_entry``: the item is read even if the source's patterns exclude its name, such as a website's start page.
    - ``fingerprint``: an item is only read again if this has changed or is missing.
    - ``depth`` is the number of links from the start page.
    """

    key: str
    name: str
    fingerprint: str = ""
    url: str = ""
    title: str = ""
    is_entry: bool = False
    depth: int = 0
    readers: ItemReaders | None = None


@dataclass(frozen=True, slots=True)
class FetchedItem:
    """The content of an item, read from its source.

    If ``data`` is None, the item does not become a document, for this ``reason``; only its ``links`` are followed.
    ``name`` replaces the item's name, unless it is empty. ``metadata`` is added to the document's; the value None
    removes a key.
    """

    data: bytes | None
    name: str = ""
    validators: Mapping[str, str] = field(default_factory=dict)
    links: tuple[RemoteItem, ...] = ()
    reason: str = ""
    metadata: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class SetupObstacle:
    """A reason why a kind of source cannot be used now; if ``is_partial``, some sources still work.

    ``sentence`` is for a curator. ``setting`` is the setting that the administrator must change, or empty.
    """

    sentence: str
    setting: str
    is_partial: bool = False


class Connector:
    """Base class of the kinds of source. An instance is an open connection to one source.

    Use it in a `with` statement, in one thread. ``options`` are the values of the form's fields, with decrypted
    secrets. ``number`` is the source's id. ``samples`` are documents for a preview.
    """

    name: str
    label: str | Promise
    description: str | Promise
    form: type[forms.Form]
    interval_minutes = 60
    # False if programs send the documents.
    is_read = True
    # Whether the source's form asks for the address of a server.
    has_address = True
    # Whether an item that is no longer listed is deleted. A feed lists only its newest entries.
    lists_everything = True
    # Whether this kind can list who may read an item.
    tells_readers = False
    # Whether this run only reports and changes nothing.
    is_preview = False
    # Whether a run lists only changed items. Each listed item must then be read.
    lists_changes = False
    run = 0
    # Why the list ended early. The items before it are saved.
    broke_off: RagsiteError | None = None

    def __init__(self, options: Mapping[str, Any], number: int) -> None:
        self.options = options
        self.number = number
        self.samples: list[dict[str, Any]] = []

    @classmethod
    def get_form_class(cls, options: Mapping[str, Any], found: Mapping[str, Any]) -> type[forms.Form]:
        """Return the form for these options. ``found`` is the stored result of the last preview."""
        return cls.form

    @property
    def notes_for_run_log(self) -> list[str]:
        return []

    @classmethod
    def find_setup_obstacles(cls) -> list[SetupObstacle]:
        """Return what prevents this site from using this kind of source, fully or partly; empty if nothing does."""
        if not cls.has_address or settings.SOURCE_PRIVATE_HOSTS:
            return []
        said = _t("Addresses inside your network need a setting. Ask an administrator of the server to allow them.")
        return [SetupObstacle(said, "SOURCE_PRIVATE_HOSTS", is_partial=True)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connection."""

    def list_items(self) -> Iterator[RemoteItem]:
        """Yield all items of the source. Raises: SourceUnreadable, SourceUnavailable."""
        raise NotImplementedError

    def is_deletion(self, key: str, last_run: int) -> bool:
        """Return whether an item that this run did not list counts as deleted. ``last_run`` listed it last."""
        return True

    def store_progress(self, saved: int, *, is_all: bool) -> None:
        """Store how far the source was read, in the current transaction.

        The first ``saved`` listed items have been stored before this call. ``is_all``: all items have been stored, and
        deleted ones removed.
        """

    def build_address(self, name: str) -> str:
        """Return the address at which readers can open the file; empty without the option base_url."""
        base = self.options.get("base_url") or ""
        return f"{base.rstrip('/')}/{quote(name)}" if base else ""

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem | None:
        """Return the item's content; None if the server says that it is unchanged.

        ``validators`` are headers from the last response. Raises: ItemFailed, ItemRejected, ItemGone,
        SourceUnavailable, SourceUnreadable.
        """
        raise NotImplementedError
