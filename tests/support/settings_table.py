"""The table of settings in `docs/search.md`, from their declaration.

``python -m tests.support.settings_table`` writes it.
"""

import re
from pathlib import Path

from core.dataclass_json import to_json
from retrieval.profile_settings import SECTIONS, SETTINGS, ProfileSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "search.md"
_TABLE = re.compile(r"(?<=<!-- settings -->\n).*?(?=<!-- /settings -->)", re.DOTALL)


def table():
    """Return the rows, by section, in the order of the form."""
    defaults = to_json(ProfileSettings())
    rows = ["| Setting | Default | Range | What it does |", "|---|---|---|---|"]
    for section in SECTIONS:
        rows += [
            f"| `{name}` | {_value(defaults[name], each)} | {_range(each)} "
            f"| {each.label}. {each.help_text}{_methods(each)} |"
            for name, each in SETTINGS.items()
            if each.section == section
        ]
    return "\n".join(rows) + "\n"


def written(page):
    return _TABLE.sub(lambda _match: table(), page)


def _value(value, setting):
    match value:
        case None:
            return setting.when_empty
        case bool():
            return "on" if value else "off"
        case dict():
            return "; ".join(f"{name} {each['vector']:g}/{each['lexical']:g}" for name, each in value.items())
        case []:
            return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _range(setting):
    if setting.bounds is None:
        return ""
    low, high = setting.bounds
    return f"{low:g} to {high:g}" + (", or empty" if setting.when_empty else "")


def _methods(setting):
    return "" if setting.methods is None else f" Concerns {', '.join(f'`{each}`' for each in sorted(setting.methods))}."


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
