"""Streams that are read incrementally do not show every withdrawn right."""

import pytest

from retrieval.sources.airbyte.streams import FULL, INCREMENTAL, check_reader_imports


@pytest.mark.parametrize(
    ("takes_readers", "modes", "refused"),
    [
        (True, {"pages": INCREMENTAL, "notes": FULL}, ["of.pages.sync_mode"]),
        (True, {"pages": INCREMENTAL, "a.b": INCREMENTAL}, ["of.pages.sync_mode", "of.a%2Eb.sync_mode"]),
        (True, {"pages": FULL}, []),
        (False, {"pages": INCREMENTAL}, []),
    ],
)
def test_rights_are_taken_over_from_full_readings_only(takes_readers, modes, refused):
    modes_of = {f"of.{name.replace('.', '%2E')}.sync_mode": mode for name, mode in modes.items()}
    options = {"streams": list(modes), "takes_readers": takes_readers, **modes_of}
    assert [field for field, _error in check_reader_imports(options)] == refused
