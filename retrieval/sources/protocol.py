"""What every kind of source can do, and what may go wrong with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self
from urllib.parse import quote

from django import forms
from django.utils.functional import Promise

from core.exceptions import RagsiteError


class SourceRefused(RagsiteError):
    """The source cannot be synchronised as it is configured. For the admin; trying again will not help."""


class AddressRefused(SourceRefused):
    """An address inside the site's own network, which no setting allows."""


class SourceUnavailable(RagsiteError):
    """The source does not answer at the moment. For the admin.

    The run is tried again, after ``pause`` if one is given.
    """

    def __init__(self, message: str, pause: timedelta | None = None) -> None:
        super().__init__(message)
        self.pause = pause


class ItemFailed(RagsiteError):
    """One item could not be read; the others are. For the admin."""


class ItemRejected(ItemFailed):
    """An item that cannot become a document. It is read again only after it has changed."""


class ItemGone(RagsiteError):
    """An item that was listed, or linked to, is not there."""


@dataclass(frozen=True, slots=True)
class RemoteItem:
    """An item that a source lists.

    ``key`` identifies it for good. ``name`` is a path: its ending shows the format, and patterns are matched with it.
    The same ``fingerprint`` means the same content; an item without one is asked for in each run. An item with
    ``is_entry`` is followed whatever the patterns say. ``depth`` is the number of links that lead to it.
    """

    key: str
    name: str
    fingerprint: str = ""
    url: str = ""
    title: str = ""
    is_entry: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Fetched:
    """The content of an item. Without ``data``, the item is no document, and only its ``links`` are followed; a run
    names it with the ``reason``, if there is one. ``name`` replaces the item's name if the content has another one.
    """

    data: bytes | None
    name: str = ""
    validators: Mapping[str, str] = field(default_factory=dict)
    links: tuple[RemoteItem, ...] = ()
    reason: str = ""


class Connector:
    """A kind of source, and an open connection to a source of that kind: used in a `with`, by one thread.

    ``form`` has the fields of its options. ``options`` are their values, secrets included. ``number`` is the source's.
    """

    name: str
    label: str | Promise
    description: str | Promise
    form: type[forms.Form]
    interval_minutes = 60
    # Items that are no longer listed are gone. A feed lists only its newest entries.
    lists_everything = True

    def __init__(self, options: Mapping[str, Any], number: int) -> None:
        self.options = options
        self.number = number

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Close what was opened."""

    def list_items(self) -> Iterator[RemoteItem]:
        """All items of the source. Raises: SourceRefused, SourceUnavailable."""
        raise NotImplementedError

    def address_of(self, name: str) -> str:
        """The address at which readers find the file; empty if the options name none."""
        base = self.options.get("base_url") or ""
        return f"{base.rstrip('/')}/{quote(name)}" if base else ""

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> Fetched | None:
        """What the item holds; None if the server says that it has not changed since it sent ``validators``.

        Raises: ItemFailed, ItemRejected, ItemGone, SourceUnavailable, SourceRefused.
        """
        raise NotImplementedError
