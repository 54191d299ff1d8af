"""Write the tables of methods and settings in `docs/search.md`, from their declarations.

``python -m tests.support.settings_table`` writes them.
"""

import re
from pathlib import Path

from core.dataclass_json import to_json
from retrieval.fusion_methods import METHODS
from retrieval.profile_settings import SECTIONS, SETTINGS, ProfileSettings
from retrieval.types import SearchMethod

PAGE = Path(__file__).resolve().parents[2] / "docs" / "search.md"
_METHODS = re.compile(r"(?<=<!-- methods -->\n).*?(?=<!-- /methods -->)", re.DOTALL)
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


def methods():
    """Return the table of search methods, in the order of the enumeration."""
    rows = ["| Method | The value of a candidate |", "|---|---|"]
    rows += [f"| `{method}` | {METHODS[method].summary} |" for method in SearchMethod]
    profile = "the published search profile: without one, `zscore`, and no reranker"
    return "\n".join([*rows, f"| `default` | {profile} ([ADR 8](adr/0008-default-fusion-zscore.md)) |"]) + "\n"


def written(page):
    return _METHODS.sub(lambda _match: methods(), _TABLE.sub(lambda _match: table(), page))


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
