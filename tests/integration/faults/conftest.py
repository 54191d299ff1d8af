from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kept_connections import new_connections


@pytest.fixture(autouse=True)
def _new_connections() -> Iterator[None]:
    with new_connections():
        yield
