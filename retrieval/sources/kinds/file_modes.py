"""Find who may read a file on this server, from the permission bits of the file and its folders."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from django.utils.translation import gettext as _t

from retrieval.sources.protocol import ItemReaders

_ACCESS_LISTS = {"system.posix_acl_access", "system.nfs4_acl", "system.richacl"}


@dataclass(frozen=True, slots=True)
class _PermittedReaders:
    """The ids of the groups and accounts that a file's permission bits allow to read."""

    groups: frozenset[int] = frozenset()
    users: frozenset[int] = frozenset()
    is_everybody: bool = False
    has_access_list: bool = False


class FileModes:
    """Finds the readers of files below ``root`` from the permission bits of files and folders.

    If a file or folder has an access control list, the readers are unknown.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: dict[Path, _PermittedReaders] = {}
        self._groups_of: dict[int, frozenset[int]] = {}

    def find_readers(self, path: Path, status: os.stat_result) -> ItemReaders:
        try:
            admitted = self._find_permitted_readers(path.resolve() if path.is_symlink() else path, status)
        except OSError as error:
            return ItemReaders(unread=error.strerror or type(error).__name__)
        if admitted.has_access_list:
            return ItemReaders(unread=_t("access lists of files are not read"))
        return ItemReaders(
            tuple(sorted(map(_find_group_name, admitted.groups))),
            tuple(sorted(map(_find_user_name, admitted.users))),
            admitted.is_everybody,
        )

    def _find_permitted_readers(self, path: Path, status: os.stat_result) -> _PermittedReaders:
        admitted = _read_mode(path, status, (stat.S_IRUSR, stat.S_IRGRP, stat.S_IROTH))
        for folder in path.parents:
            admitted = self._intersect(admitted, self._read_folder(folder))
            if folder == self._root:
                break
        return admitted

    def _read_folder(self, folder: Path) -> _PermittedReaders:
        if folder not in self._folders:
            bits = (stat.S_IXUSR, stat.S_IXGRP, stat.S_IXOTH)
            self._folders[folder] = _read_mode(folder, folder.stat(), bits)
        return self._folders[folder]

    def _intersect(self, one: _PermittedReaders, other: _PermittedReaders) -> _PermittedReaders:
        has_access_list = one.has_access_list or other.has_access_list
        users = {user for user in one.users | other.users if self._admits(one, user) and self._admits(other, user)}
        groups = one.groups & other.groups
        if one.is_everybody or other.is_everybody:
            groups = (other if one.is_everybody else one).groups
        is_everybody = one.is_everybody and other.is_everybody
        return _PermittedReaders(groups, frozenset(users), is_everybody, has_access_list)

    def _admits(self, admitted: _PermittedReaders, user: int) -> bool:
        if user not in self._groups_of:
            self._groups_of[user] = _list_groups(user)
        return admitted.is_everybody or user in admitted.users or bool(admitted.groups & self._groups_of[user])


def _read_mode(path: Path, status: os.stat_result, bits: tuple[int, int, int]) -> _PermittedReaders:
    of_owner, of_group, of_others = (bool(status.st_mode & bit) for bit in bits)
    return _PermittedReaders(
        groups=frozenset([status.st_gid] if of_group else []),
        # Root owns many files of other people.
        users=frozenset([status.st_uid] if of_owner and status.st_uid else []),
        # If others may read but the group may not, others are not admitted, because a list cannot exclude the group.
        is_everybody=of_group and of_others,
        has_access_list=_has_access_list(path),
    )


def _has_access_list(path: Path) -> bool:
    with suppress(OSError):
        return not _ACCESS_LISTS.isdisjoint(os.listxattr(path))
    return False


def _list_groups(user: int) -> frozenset[int]:
    with suppress(KeyError):
        entry = pwd.getpwuid(user)
        return frozenset(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return frozenset()


def _find_group_name(number: int) -> str:
    with suppress(KeyError):
        return grp.getgrgid(number).gr_name
    return str(number)


def _find_user_name(number: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)
