"""A folder of the server, or one that is mounted there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.submission import check_size
from retrieval.ingest.submission.folders import SKIPPED_FOLDERS
from retrieval.sources.options import AddressField, Options
from retrieval.sources.protocol import (
    Connector,
    Fetched,
    ItemFailed,
    ItemGone,
    ItemRejected,
    RemoteItem,
    SourceKind,
    SourceRefused,
    SourceUnavailable,
)


def allowed_folder(path: str) -> Path:
    """The folder, as a path without links. Raises: SourceRefused unless it lies in one of SOURCE_FOLDERS."""
    folder = Path(path).resolve()
    if not any(folder.is_relative_to(Path(root).resolve()) for root in settings.SOURCE_FOLDERS):
        roots = ", ".join(map(str, settings.SOURCE_FOLDERS))
        if not roots:
            raise SourceRefused(_t("No folder may be read yet: name one in the setting SOURCE_FOLDERS."))
        raise SourceRefused(_t("This must lie in one of the folders of SOURCE_FOLDERS: %s.") % roots)
    return folder


class FolderPathField(forms.CharField):
    def clean(self, value: object) -> str:
        path = str(super().clean(value))
        try:
            folder = allowed_folder(path)
        except (SourceRefused, OSError, ValueError) as error:
            raise ValidationError(str(error)) from error
        if not folder.is_dir():
            raise ValidationError(_t("There is no folder %s.") % path)
        return str(folder)


class FolderOptions(Options):
    path = FolderPathField(
        label=_("Folder"), max_length=1000, help_text=_("On the server, within one of SOURCE_FOLDERS.")
    )
    base_url = AddressField(
        label=_("Web address of the folder"),
        required=False,
        help_text=_("Where readers find the files, if they do: the path of each is added."),
    )
    field_order = ["path", "base_url"]


class FolderConnector(Connector):
    def list_items(self) -> Iterator[RemoteItem]:
        root = allowed_folder(self.options["path"])
        if not root.is_dir():
            raise SourceUnavailable(_t("There is no folder %s.") % root)
        base = self.options.get("base_url") or ""
        for path, status in _walk(root, root):
            name = path.relative_to(root).as_posix()
            # What the file system has as a name may be no text; `fetch` says so.
            name = name.encode("utf-8", "backslashreplace").decode()
            url = f"{base.rstrip('/')}/{quote(name)}" if base else ""
            yield RemoteItem(name, name, f"{status.st_mtime_ns}-{status.st_size}", url)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> Fetched:
        root = allowed_folder(self.options["path"])
        path = root / item.key
        try:
            check_size(item.name, path.stat().st_size)
            if not path.resolve().is_relative_to(root):
                raise ItemGone(item.name)
            return Fetched(path.read_bytes())
        except DocumentRejected as error:
            raise ItemRejected(str(error)) from error
        except FileNotFoundError as error:
            if "\\udc" in item.name:
                raise ItemRejected(_t("%s: rename it, its name is not UTF-8.") % item.name) from error
            raise ItemGone(item.name) from error
        except OSError as error:
            raise ItemFailed(f"{item.name}: {error.strerror}.") from error


def _walk(folder: Path, root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files below, in order of their names, with what the file system says of them. Links that lead out of
    ``root`` are passed over, and so are folders that are links: they may lead round in circles.

    Raises: SourceUnavailable when a folder cannot be listed: its files are not taken to be gone.
    """
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        for entry in entries:
            if entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS:
                continue
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(path, root)
            elif entry.is_file() and (not entry.is_symlink() or path.resolve().is_relative_to(root)):
                # One that went away meanwhile is not there.
                with suppress(FileNotFoundError):
                    yield path, entry.stat()
    except OSError as error:
        raise SourceUnavailable(_t("%(path)s cannot be read: %(why)s.") % {
            "path": error.filename or folder, "why": error.strerror
        }) from error  # fmt: skip


KIND = SourceKind(
    name="folder",
    label=_("Folder"),
    description=_("A folder of the server, or a share that is mounted there; looked at every minute."),
    options=FolderOptions,
    connector=FolderConnector,
    interval_minutes=1,
)
