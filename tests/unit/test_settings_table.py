from __future__ import annotations

from tests.support import settings_table


def test_the_manual_has_every_setting_as_it_is_declared() -> None:
    page = settings_table.PAGE.read_text()
    assert settings_table.table() in page, "run `python -m tests.support.settings_table`"
