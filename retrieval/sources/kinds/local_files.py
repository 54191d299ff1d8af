"""Read files in folders of the server, and in Git repositories."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.documents.file_loading import SKIPPED_FOLDERS
from retrieval.documents.formats import is_web_page_asset
from retrieval.documents.submission import check_size
from retrieval.exceptions import DocumentRejected
from retrieval.sources.kinds.file_modes import FileModes
from retrieval.sources.network import Client, check_listing_response
from retrieval.sources.options import BaseUrlForm, SourceAccountForm, SourceOptionsForm, WebAddressField
from retrieval.sources.protocol import (
    Connector,
    FetchedItem,
    ItemFailed,
    ItemGone,
    ItemRejected,
    RemoteItem,
    SetupObstacle,
    SourceUnavailable,
    SourceUnreadable,
)
from retrieval.sources.reader_names import ReadersBySourceForm


def resolve_allowed_folder(path: str) -> Path:
    """Return the folder's path without symbolic links. Raises: SourceUnreadable if it is outside SOURCE_FOLDERS."""
    folder = Path(path).resolve()
    if not any(folder.is_relative_to(Path(root).resolve()) for root in settings.SOURCE_FOLDERS):
        roots = ", ".join(map(str, settings.SOURCE_FOLDERS))
        if not roots:
            raise SourceUnreadable(_t("No folder may be read yet: name one in the setting SOURCE_FOLDERS."))
        raise SourceUnreadable(_t("This must lie in one of the folders of SOURCE_FOLDERS: %s.") % roots)
    return folder


class FolderPathField(forms.CharField):
    widget = forms.TextInput(attrs={"class": "vLargeTextField"})

    def clean(self, value: object) -> str:
        path = str(super().clean(value))
        try:
            folder = resolve_allowed_folder(path)
            if not folder.is_dir():
                raise ValidationError(_t("There is no folder %s.") % path)
        except (SourceUnreadable, OSError, ValueError) as error:
            raise ValidationError(str(error)) from error
        return str(folder)


class FolderOptions(ReadersBySourceForm, SourceOptionsForm, BaseUrlForm):
    path = FolderPathField(
        label=_("Folder"), max_length=1000, help_text=_("On the server, within one of SOURCE_FOLDERS.")
    )


class FolderConnector(Connector):
    name = "folder"
    label = _("Folder")
    description = _("A folder of the server, or a share that is mounted there. It is checked every minute.")
    form = FolderOptions
    has_address = False
    tells_readers = True
    interval_minutes = 1

    @classmethod
    def find_setup_obstacles(cls) -> list[SetupObstacle]:
        if settings.SOURCE_FOLDERS:
            return []
        said = _t("This site may read no folder of its server yet. Ask an administrator of the server to allow one.")
        return [SetupObstacle(said, "SOURCE_FOLDERS")]

    def list_items(self) -> Iterator[RemoteItem]:
        root = resolve_allowed_folder(self.options["path"])
        if not root.is_dir():
            raise SourceUnavailable(_t("There is no folder %s.") % root)
        modes = FileModes(root) if self.options.get("takes_readers") else None
        for path, status in _walk(root, root):
            name = path.relative_to(root).as_posix()
            # A name may not be valid UTF-8. `fetch` rejects its file.
            name = name.encode("utf-8", "backslashreplace").decode()
            readers = modes.find_readers(path, status) if modes is not None else None
            fingerprint = f"{status.st_mtime_ns}-{status.st_size}"
            yield RemoteItem(name, name, fingerprint, self.build_address(name), readers=readers)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem:
        root = resolve_allowed_folder(self.options["path"])
        path = root / item.key
        try:
            check_size(item.name, path.stat().st_size)
            if not path.resolve().is_relative_to(root):
                raise ItemGone(item.name)
            return FetchedItem(path.read_bytes())
        except DocumentRejected as error:
            raise ItemRejected(str(error)) from error
        except FileNotFoundError as error:
            if "\\udc" in item.name:
                raise ItemRejected(_t("%s: rename it, its name is not UTF-8.") % item.name) from error
            raise ItemGone(item.name) from error
        except OSError as error:
            raise ItemFailed(f"{item.name}: {error.strerror}.") from error


def _walk(folder: Path, root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files below ``folder`` with their status, sorted by name.

    Links to folders, and to files outside ``root``, are skipped. Raises: SourceUnavailable if a folder cannot be
    listed.
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
                with suppress(FileNotFoundError):
                    yield path, entry.stat()
    except OSError as error:
        raise SourceUnavailable(_t("%(path)s cannot be read: %(why)s.") % {
            "path": error.filename or folder, "why": error.strerror
        }) from error  # fmt: skip


# Git's mode for a submodule, whose files are in another repository.
_SUBMODULE = 0o160000
# The limit of a Git server's response, which is kept in memory.
_MOST_BYTES = 256 * 2**20


class RepositoryField(FolderPathField):
    def clean(self, value: object) -> str:
        return WebAddressField().clean(value) if "://" in str(value) else super().clean(value)


class GitOptions(SourceOptionsForm, SourceAccountForm, BaseUrlForm):
    repository = RepositoryField(
        label=_("Repository"), max_length=1000, help_text=_("An https address, or a folder within SOURCE_FOLDERS.")
    )
    branch = forms.CharField(label=_("Branch"), max_length=200, required=False, help_text=_("Empty: the default one."))


class GitConnector(Connector):
    name = "git"
    label = _("Git repository")
    description = _("Files of a branch, over https or in a folder of the server. Only changed files are read again.")
    form = GitOptions

    @classmethod
    def find_setup_obstacles(cls) -> list[SetupObstacle]:
        found = super().find_setup_obstacles()
        if not settings.SOURCE_FOLDERS:
            said = _t("Repositories in folders of the server cannot be read yet. Ask an administrator of the server.")
            found.append(SetupObstacle(said, "SOURCE_FOLDERS", is_partial=True))
        return found

    _repository: Any = None

    def __init__(self, options: Mapping[str, Any], number: int) -> None:
        super().__init__(options, number)
        self._submodules: set[str] = set()

    def __exit__(self, *error: object) -> None:
        if self._repository is not None:
            self._repository.close()

    def list_items(self) -> Iterator[RemoteItem]:
        from dulwich.errors import GitProtocolError, NotGitRepository
        from dulwich.object_store import iter_tree_contents
        from dulwich.repo import Repo

        try:
            if "://" in self.options["repository"]:
                commit = self._fetch_commit()
            else:
                self._repository = Repo(str(resolve_allowed_folder(self.options["repository"])))
                commit = self._choose_commit(self._repository.get_refs())
        except NotGitRepository as error:
            raise SourceUnreadable(_t("%s is not a Git repository.") % self.options["repository"]) from error
        except (GitProtocolError, OSError) as error:
            raise SourceUnavailable(str(error) or type(error).__name__) from error
        tree = self._repository[commit].tree
        for entry in iter_tree_contents(self._repository.object_store, tree):
            name = entry.path.decode("utf-8", "backslashreplace")
            is_submodule = stat.S_IFMT(entry.mode) == _SUBMODULE
            if is_submodule or (stat.S_ISREG(entry.mode) and not is_web_page_asset(name, has_pages=True)):
                self._submodules |= {name} if is_submodule else set()
                yield RemoteItem(name, name, entry.sha.decode(), self.build_address(name))

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem:
        if item.name in self._submodules:
            return FetchedItem(None, reason=_t("a submodule: add its repository as a source of its own"))
        try:
            blob = self._repository[item.fingerprint.encode()]
            check_size(item.name, blob.raw_length())
            return FetchedItem(blob.data)
        except KeyError as error:
            raise ItemGone(item.name) from error
        except DocumentRejected as error:
            raise ItemRejected(str(error)) from error

    def _fetch_commit(self) -> bytes:
        from dulwich.repo import Repo

        path = get_clone_path(self.number)
        if (path / "HEAD").exists():
            self._repository = Repo(str(path))
        else:
            path.mkdir(parents=True, exist_ok=True)
            self._repository = Repo.init_bare(str(path))
        found: list[bytes] = []

        def choose_missing_commits(refs: Mapping[bytes, bytes], depth: int | None = None) -> list[bytes]:
            found[:] = [self._choose_commit(refs)]
            return [each for each in found if each not in self._repository.object_store]

        password = self.options.get("password", "")
        # Git servers expect this user name together with a token.
        username = self.options.get("username") or ("x-access-token" if password else "")
        with Client(self.options["repository"], account=(username, password)) as client:
            _make_git_client(client, self.options["repository"]).fetch(
                "", self._repository, determine_wants=choose_missing_commits, depth=1
            )
        return found[0]

    def _choose_commit(self, refs: Mapping[bytes, bytes]) -> bytes:
        branch = self.options.get("branch") or ""
        name = f"refs/heads/{branch}".encode() if branch else b"HEAD"
        if not refs.get(name):
            raise SourceUnreadable(_t("The repository has no branch %s.") % (branch or "HEAD"))
        return refs[name]


def get_clone_path(number: int) -> Path:
    return Path(settings.DATA_DIR) / "sources" / f"{number}.git"


def _make_git_client(client: Client, repository: str) -> Any:
    from dulwich.client import AbstractHttpGitClient

    class GitOverHttp(AbstractHttpGitClient):
        def _http_request(
            self,
            url: str,
            headers: dict[str, str] | None = None,
            data: bytes | Iterator[bytes] | None = None,
            raise_for_status: bool = True,
        ) -> tuple[Any, Callable[[int], bytes]]:
            content = data if data is None or isinstance(data, bytes) else b"".join(data)
            answer = client.request(
                "GET" if content is None else "POST",
                url,
                headers=headers or {},
                content=content,
                most_bytes=_MOST_BYTES,
            )
            check_listing_response(answer)
            # dulwich reads these attributes of a response.
            told = SimpleNamespace(
                content_type=answer.headers.get("content-type"),
                redirect_location=answer.url if answer.url != url else "",
                headers=answer.headers,
                status=200,
                close=lambda: None,
            )
            return told, io.BytesIO(answer.body).read

    return GitOverHttp(repository)
