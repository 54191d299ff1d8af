"""The layout: few rooms, no deep paths, one name for one module, and no module too thin to be a topic of its own."""

from functools import cache

from tests.support.house import (
    importers_of,
    modules_of_one_neighbour,
    read_modules,
    repeated_class_names,
    repeated_module_names,
)

# A module that one other module of its folder imports is a topic of its own from about so many lines.
TOPIC_LINES = 100


@cache
def importers():
    return importers_of(read_modules())


def test_no_path_is_deeper_than_app_room_part_module():
    assert [path for path in read_modules() if len(path.parts) > 4] == []


def test_no_two_modules_of_an_app_have_the_same_name():
    assert repeated_module_names(read_modules()) == []


def test_no_two_modules_define_a_class_of_the_same_name():
    assert repeated_class_names(read_modules()) == {}


def test_what_one_module_alone_imports_is_a_topic_or_a_part_of_that_module():
    texts = read_modules()
    found = modules_of_one_neighbour(importers())
    thin = {str(path): str(importer) for path, importer in found.items() if texts[path].count("\n") < TOPIC_LINES}
    assert not thin, "put each of these into the module that imports it"
