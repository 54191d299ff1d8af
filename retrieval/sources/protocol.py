"""The interface of all kinds of sources, and their errors."""

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


class SourceRefused(RagsiteError):
    """The source cannot be synchronised as configured. The message is for the admin; a retry will not help."""


class AddressRefused(SourceRefused):
    """An address is inside the site's own network, and no setting allows it."""


class SourceUnavailable(RagsiteError):
    """The source does not answer now. The run is tried again, after ``pause`` if given."""

    def __init__(self, message: str, pause: timedelta | None = None) -> None:
        super().__init__(message)
        self.pause = pause


class TimeIsUp(RagsiteError):
    """An error: the time of this attempt is over; the next attempt does the rest."""


class ItemFailed(RagsiteError):
    """One item could not be read. The message is for the admin."""


class ItemRejected(ItemFailed):
    """The item cannot become a document. It is read again only after a change."""


class ItemGone(RagsiteError):
    """An item that was listed or linked does not exist."""


class ItemDeleted(ItemGone):
    """The source says that the item was deleted. The message is for the log of the run."""


@dataclass(frozen=True, slots=True)
class ItemReaders:
    """Who may read an item in its source.

    ``groups`` and ``users`` are names there; a user is best named by a mail address. ``unread`` says why the readers
    could not be read: nothing else is known then.
    """

    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    is_everybody: bool = False
    unread: str = ""


@dataclass(frozen=True, slots=True)
class RemoteItem:
    """An item listed by a source.

    ``key`` never changes. ``name`` is a path, which shows the format and is matched by patterns, unless ``is_entry``.
    The same ``fingerprint`` means the same content; an empty one is requested in each run. ``depth`` is the number of
    links to it. ``readers`` come with each listing, also of unchanged items, if the kind can tell them.
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
class Fetched:
    """The content of an item.

    An item without ``data`` is not a document; only its ``links`` are followed, and the run shows a ``reason``.
    ``name`` replaces the item's name. ``metadata`` are the document's; None as a value removes a name.
    """

    data: bytes | None
    name: str = ""
    validators: Mapping[str, str] = field(default_factory=dict)
    links: tuple[RemoteItem, ...] = ()
    reason: str = ""
    metadata: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why a kind of source cannot be used now. With ``is_partial``, only some of its sources cannot.

    ``sentence`` is for a curator, ``setting`` the name of the setting that an administrator of the server changes, if
    there is one.
    """

    sentence: str
    setting: str
    is_partial: bool = False


class Connector:
    """A kind of source, and an open connection to such a source, used in a `with` by one thread.

    ``options`` are the values of ``form``'s fields, secrets included. ``number`` is the source's id. ``samples`` are
    documents as a preview shows them.
    """

    name: str
    label: str | Promise
    description: str | Promise
    form: type[forms.Form]
    interval_minutes = 60
    # Runs read the source. Otherwise programs send its documents.
    is_read = True
    # The kind asks a server at an address that the form takes.
    has_address = True
    # Items that are no longer listed are gone. A feed lists only its newest entries.
    lists_everything = True
    # Items name their readers, if the option takes_readers is on.
    tells_readers = False
    # The run only reports.
    is_preview = False
    # Runs list what changed since the last one, so a change that is listed once must be read.
    lists_changes = False
    # The number of the run.
    run = 0
    # The listing ended early for this reason, and the items before it are to be saved.
    broke_off: RagsiteError | None = None

    def __init__(self, options: Mapping[str, Any], number: int) -> None:
        self.options = options
        self.number = number
        self.samples: list[dict[str, Any]] = []

    @classmethod
    def form_for(cls, options: Mapping[str, Any], found: Mapping[str, Any]) -> type[forms.Form]:
        """Return the form of a source with these options; ``found`` is what its last preview found."""
        return cls.form

    @property
    def notes(self) -> list[str]:
        """Return lines for the log of the run."""
        return []

    @classmethod
    def find_obstacles(cls) -> list[Obstacle]:
        """Return what this site must allow before the kind can be used, or used fully; empty if it can be now."""
        if not cls.has_address or settings.SOURCE_PRIVATE_HOSTS:
            return []
        said = _t("Addresses inside your network need a setting. Ask an administrator of the server to allow them.")
        return [Obstacle(said, "SOURCE_PRIVATE_HOSTS", is_partial=True)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the connection."""

    def list_items(self) -> Iterator[RemoteItem]:
        """Yield all items of the source. Raises: SourceRefused, SourceUnavailable."""
        raise NotImplementedError

    def covers(self, key: str, last_run: int) -> bool:
        """Return whether an item that was not listed is gone. ``last_run`` is the number of the run that saw it."""
        return True

    def settle(self, saved: int, *, is_all: bool) -> None:
        """Store, in the current transaction, how far the source was read.

        The first ``saved`` listed items are saved; with ``is_all``, all are, and those that are gone were dealt with.
        """

    def address_of(self, name: str) -> str:
        """Return the address at which readers find the file; empty if the options have none."""
        base = self.options.get("base_url") or ""
        return f"{base.rstrip('/')}/{quote(name)}" if base else ""

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> Fetched | None:
        """Return the item's content; None if it has not changed since the server sent ``validators``.

        Raises: ItemFailed, ItemRejected, ItemGone, SourceUnavailable, SourceRefused.
        """
        raise NotImplementedError
