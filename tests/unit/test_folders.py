"""The layout: no deep paths, and one name for one module and for one class."""

from tests.support.house import read_modules, repeated_class_names, repeated_module_names


def test_no_path_is_deeper_than_app_room_part_module():
    assert [path for path in read_modules() if len(path.parts) > 4] == []


def test_no_two_modules_of_an_app_have_the_same_name():
    assert repeated_module_names(read_modules()) == []


def test_no_two_modules_define_a_class_of_the_same_name():
    assert repeated_class_names(read_modules()) == {}
