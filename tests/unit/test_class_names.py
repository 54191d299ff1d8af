"""One meaning for each class name."""

from __future__ import annotations

from tests.support.house import read_modules, repeated_class_names


def test_no_two_modules_define_a_class_of_the_same_name() -> None:
    assert repeated_class_names(read_modules()) == {}
