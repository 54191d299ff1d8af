from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict


class BackendSetting(TypedDict, total=False):
    """A setting that names a class by its dotted path (empty: no class), with keyword arguments."""

    BACKEND: str
    OPTIONS: Mapping[str, object]
