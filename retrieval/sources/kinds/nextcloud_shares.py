"""Find who may read a file of Nextcloud or ownCloud: those with whom the source's account has shared it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from django.utils.translation import gettext as _t

from retrieval.sources.network import Client, check_listing_response
from retrieval.sources.protocol import ItemReaders, SourceUnavailable, SourceUnreadable

_SERVICE = "/remote.php/"
_TO_ACCOUNT, _TO_GROUP = 0, 1
_READ = 1


@dataclass(slots=True)
class Shares:
    """The shares of an account (``owner``): for each path below ``root``, the accounts and groups that may read it."""

    owner: str
    root: PurePosixPath
    unread: str = ""
    groups: dict[PurePosixPath, set[str]] = field(default_factory=dict)
    users: dict[PurePosixPath, set[str]] = field(default_factory=dict)

    def find_file_readers(self, name: str) -> ItemReaders:
        """Return the readers of a file: its owner, and all with whom the file or a folder above it is shared."""
        if self.unread:
            return ItemReaders(unread=self.unread)
        path = self.root / name
        places = [path, *path.parents]
        groups = set[str]().union(*(self.groups.get(each, ()) for each in places))
        users = {self.owner}.difference([""]).union(*(self.users.get(each, ()) for each in places))
        return ItemReaders(tuple(sorted(groups)), tuple(sorted(users)))


def read_shares(client: Client, address: str, account: str) -> Shares:
    """Request all shares that the account made. ``address`` is the source's folder."""
    host, service, rest = address.partition(_SERVICE)
    parts = unquote(urlsplit(f"//x/{rest}").path).strip("/").split("/")
    skipped = 3 if parts[:2] == ["dav", "files"] else 1
    shares = Shares(account, PurePosixPath("/", *parts[skipped:]))
    if not service:
        shares.unread = _t("the address is none of Nextcloud or ownCloud")
        return shares
    asked = f"{host}/ocs/v2.php/apps/files_sharing/api/v1/shares?format=json&reshares=true"
    try:
        response = client.get(asked, headers={"OCS-APIRequest": "true"})
        check_listing_response(response)
        for share in json.loads(response.body)["ocs"]["data"]:
            _add_share(shares, share)
    except (SourceUnreadable, SourceUnavailable) as error:
        if isinstance(error, SourceUnavailable) and error.pause is not None:
            raise
        shares.unread = str(error)
    except (ValueError, KeyError, TypeError):
        shares.unread = _t("the list of shares is in a form that is not understood")
    return shares


def _add_share(shares: Shares, share: dict[str, Any]) -> None:
    by_path = {_TO_ACCOUNT: shares.users, _TO_GROUP: shares.groups}.get(int(share["share_type"]))
    if by_path is not None and int(share["permissions"]) & _READ:
        by_path.setdefault(PurePosixPath(share["path"]), set()).add(str(share["share_with"]))
