"""Describe the differences between two versions of a search profile."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _t

from core.dataclass_json import to_json
from retrieval.profile_settings import (
    NO_RERANKER,
    SETTINGS,
    ProfileSettings,
)
from retrieval.types import QueryClass, RetrieverWeights


def describe_differences(before: ProfileSettings, after: ProfileSettings) -> list[tuple[str, str, str]]:
    """Return the settings that differ, each as label, old value and new value, for users."""
    rows = []
    for name, setting in SETTINGS.items():
        old, new, label = getattr(before, name), getattr(after, name), _t(setting.label)
        if name == "class_weights":
            changed = [each for each in QueryClass if old[each] != new[each]]
            rows += [
                (f"{label}: {each}", _write_value(name, old[each]), _write_value(name, new[each])) for each in changed
            ]
        elif old != new:
            rows.append((label, _write_value(name, old), _write_value(name, new)))
    return rows


def _write_value(name: str, value: Any) -> str:
    match value:
        case None:
            return _t(SETTINGS[name].when_empty)
        case bool():
            return _t("yes") if value else _t("no")
        case float():
            return f"{value:g}"
        case RetrieverWeights() | tuple():
            return json.dumps(to_json(value), ensure_ascii=False)
    return str(value)


def label_reranker(name: str) -> str:
    if name == NO_RERANKER:
        return _t("none: the order of the fusion is kept")
    return name if name in settings.RERANKERS else _t("%s (removed)") % name
