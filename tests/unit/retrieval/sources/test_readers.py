"""Combining readers with metadata, names there and here, the modes of files, and shares."""

import json
import os
import stat
from types import SimpleNamespace

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from retrieval.models import SourceItem
from retrieval.models.source import EVERYBODY
from retrieval.sources.item_metadata import combine_document_metadata, combine_item_metadata
from retrieval.sources.kinds import file_modes
from retrieval.sources.kinds.file_modes import FileModes
from retrieval.sources.kinds.nextcloud_shares import read_shares
from retrieval.sources.network import Response
from retrieval.sources.protocol import ItemReaders
from retrieval.sources.reader_names import NamesField, ReaderNameTable

NAMES = st.lists(st.sampled_from(["a", "b", "c", "mail:d@example.org"]), max_size=4)
VALUES = st.one_of(NAMES, st.sampled_from(["a", "b", 7, {"a": 1}]))
METADATA = st.one_of(st.just({}), st.builds(lambda value: {"groups": value}, VALUES))


def admits(metadata, name):
    """Return whether the metadata admit the name, by the rule of documents."""
    if "groups" not in metadata:
        return True
    value = metadata["groups"]
    return value == name if isinstance(value, str) else isinstance(value, list) and name in value


@given(own=METADATA, of_source=METADATA, readers=st.one_of(st.none(), NAMES))
def test_a_name_is_admitted_if_all_admit_it(own, of_source, readers):
    combined = combine_document_metadata(own, of_source, readers)
    for name in ("a", "b", "c", "mail:d@example.org", "stranger"):
        by_readers = readers is None or name in readers
        assert admits(combined, name) == (admits(own, name) and admits(of_source, name) and by_readers)


@given(own=st.one_of(st.none(), NAMES), of_source=METADATA, readers=st.one_of(st.just(EVERYBODY), NAMES))
def test_readers_by_source_combine_like_those_of_a_push(own, of_source, readers):
    item = SourceItem(readers=readers, own_groups=own)
    pushed = {} if own is None else {"groups": own}
    expected = combine_document_metadata(pushed, of_source, None if readers == EVERYBODY else readers)
    assert combine_item_metadata(item, of_source) == expected


def test_without_readers_the_metadata_of_the_source_come_first():
    item = SourceItem(readers=None, own_groups=["a"])
    assert combine_item_metadata(item, {"groups": ["b"], "team": "x"}) == {"groups": ["b"], "team": "x"}
    assert combine_item_metadata(item, {"team": "x"}) == {"groups": ["a"], "team": "x"}


@pytest.mark.parametrize(
    ("groups", "users", "named", "unmatched"),
    [
        (["sales"], [], ["sales"], []),
        (["Finance dept"], [], ["Finance"], []),
        (["cn=x,ou=y"], [], ["Care"], []),
        ([], ["jsmith"], ["mail:john@example.org"], []),
        ([], ["Ann@Example.org"], ["mail:ann@example.org"], []),
        (["one person"], [], ["mail:ann@example.org"], []),
        (["sales", "all-staff"], [], EVERYBODY, []),
        ([], ["all-staff"], [], ["all-staff"]),
        # An account is no group, whatever its name; a group is no account.
        ([], ["sales", "Finance dept"], [], ["Finance dept", "sales"]),
        (["mail:ann@example.org"], [], [], ["mail:ann@example.org"]),
        (["ann@example.org"], [], ["ann@example.org"], []),
    ],
)
def test_names_there_become_names_here(groups, users, named, unmatched):
    lines = NamesField().clean(
        "Finance dept = Finance\ncn=x,ou=y = Care\njsmith=John@example.org\none person = ann@example.org\nall-staff = *"
    )
    table = ReaderNameTable({"reader_names": lines})
    assert table.translate(ItemReaders(tuple(groups), tuple(users))) == named
    assert sorted(table.unmatched) == unmatched


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("sales", "must be a name there"),
        ("= Sales", "must be a name there"),
        ("sales =", "must be a name there"),
        ("a = b\na = c", "“a” has two lines"),
        ("a = mail:ann@example.org", "without “mail:”"),
        ("a = ann@", "is not a mail address"),
        ("\n".join(f"{number} = x" for number in range(1001)), "more than 1000 lines"),
    ],
)
def test_a_wrong_table_is_refused(lines, said):
    with pytest.raises(ValidationError, match=said):
        NamesField(required=False).clean(lines)


GROUP = os.getgid()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(file_modes, "_find_group_name", lambda number: "mine" if number == GROUP else str(number))
    tmp_path.chmod(0o755)
    (tmp_path / "below").mkdir()
    (tmp_path / "below").chmod(0o755)
    (tmp_path / "below" / "file.md").write_text("A file.")
    return tmp_path


def readers_of(folder, path, mode, of_folder=0o755):
    path.chmod(mode)
    (folder / "below").chmod(of_folder)
    status = path.stat()
    # Tests may run as the system's administrator, whose name is left out.
    seen = os.stat_result([*status[:4], 4242, *status[5:]])
    return FileModes(folder).find_readers(path, seen)


@pytest.mark.parametrize(
    ("mode", "of_folder", "groups", "is_everybody"),
    [
        (0o644, 0o755, (), True),
        (0o640, 0o755, ("mine",), False),
        (0o600, 0o755, (), False),
        (0o644, 0o750, ("mine",), False),
        (0o644, 0o700, (), False),
        (0o640, 0o710, ("mine",), False),
        # A folder may be passed by its x alone.
        (0o644, 0o711, (), True),
        # The group is shut out, which no list of readers can say.
        (0o604, 0o755, (), False),
    ],
)
def test_modes_of_a_file_and_of_its_folders(folder, mode, of_folder, groups, is_everybody):
    found = readers_of(folder, folder / "below" / "file.md", mode, of_folder)
    assert ((found.groups or ()) if not is_everybody else (), found.is_everybody) == (groups, is_everybody)
    assert found.users == (("4242",) if stat.S_IMODE(of_folder) & 0o001 else ())
    assert not found.unread


def test_a_link_has_the_folders_of_its_file_and_an_access_list_is_not_read(folder, monkeypatch):
    (folder / "below" / "file.md").chmod(0o644)
    (folder / "below").chmod(0o700)
    link = folder / "link.md"
    link.symlink_to(folder / "below" / "file.md")
    assert not FileModes(folder).find_readers(link, link.stat()).is_everybody
    (folder / "below").chmod(0o755)
    assert FileModes(folder).find_readers(link, link.stat()).is_everybody
    limited = os.path.realpath(folder / "below")
    monkeypatch.setattr(
        os, "listxattr", lambda path: ["system.posix_acl_access"] if str(path) == limited else ["user.x"]
    )
    assert "access lists" in FileModes(folder).find_readers(link, link.stat()).unread


SHARES = [
    {"path": "/Handbook", "share_type": 1, "share_with": "staff", "permissions": 17},
    {"path": "/Handbook/pay", "share_type": 0, "share_with": "bob", "permissions": "1"},
    {"path": "/Handbook/pay/x.md", "share_type": 3, "share_with": None, "permissions": 1},
    {"path": "/Handbook/drop", "share_type": 1, "share_with": "all", "permissions": 4},
    {"path": "/Handbook2", "share_type": 1, "share_with": "others", "permissions": 1},
]


def client_of(body, status=200):
    asked = []

    def get(url, headers):
        asked.append((url, headers))
        return Response(url, status, {}, body)

    return SimpleNamespace(get=get, asked=asked)


@pytest.mark.parametrize("path", ["/remote.php/dav/files/ann/Hand%62ook/", "/remote.php/webdav/Handbook/"])
def test_a_share_of_a_folder_is_one_of_its_files(path):
    client = client_of(json.dumps({"ocs": {"data": SHARES}}).encode())
    shares = read_shares(client, f"https://cloud.example.org/sub{path}", "ann")
    [(asked, headers)] = client.asked
    assert asked.startswith("https://cloud.example.org/sub/ocs/v2.php/apps/files_sharing/api/v1/shares?")
    assert headers == {"OCS-APIRequest": "true"}
    assert shares.find_file_readers("a.md") == ItemReaders(("staff",), ("ann",))
    assert shares.find_file_readers("pay/x.md") == ItemReaders(("staff",), ("ann", "bob"))
    assert shares.find_file_readers("drop/x.md") == ItemReaders(("staff",), ("ann",))


@pytest.mark.parametrize(
    ("address", "body", "status", "said"),
    [
        ("https://dav.example.org/", b"", 200, "none of Nextcloud"),
        ("https://x.example.org/remote.php/dav/files/ann/", b"<ocs/>", 200, "not understood"),
        ("https://x.example.org/remote.php/dav/files/ann/", b'{"ocs": {"data": [{}]}}', 200, "not understood"),
        ("https://x.example.org/remote.php/dav/files/ann/", b"", 404, "answered 404"),
    ],
)
def test_shares_that_cannot_be_read_say_so(address, body, status, said):
    assert said in read_shares(client_of(body, status), address, "ann").find_file_readers("a.md").unread
