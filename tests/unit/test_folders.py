"""Folders small enough to see at one glance."""

from __future__ import annotations

from tests.support.house import modules_by_folder, read_modules

MOST_MODULES = 25


def test_no_folder_holds_more_modules_than_are_seen_at_one_glance() -> None:
    large = {folder: count for folder, count in modules_by_folder(read_modules()).items() if count > MOST_MODULES}
    assert not large, "group modules of one kind in a folder whose name says what they are"
