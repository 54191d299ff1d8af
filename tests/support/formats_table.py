"""The table of formats in `docs/formats.md`, and the list of those that are refused, from their declaration.

``python -m tests.support.formats_table`` writes them.
"""

import re
import textwrap
from pathlib import Path

from retrieval.documents import formats

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
_TABLE = re.compile(r"(?<=<!-- formats -->\n).*?(?=<!-- /formats -->)", re.DOTALL)
_REFUSED = re.compile(r"(?<=<!-- refused -->\n).*?(?=<!-- /refused -->)", re.DOTALL)


def table():
    """Return the table of formats that are read; formats of one label and one view share a row."""
    rows = {}
    for known in formats.read_formats():
        rows.setdefault((known.label, known.view.value), []).extend(f"`.{name}`" for name in known.extensions)
    lines = [f"| {label} | {' '.join(names)} | {view} |" for (label, view), names in rows.items()]
    return "\n".join(["| format | names end with | the source viewer shows it |", "|---|---|---|", *lines]) + "\n"


def refused():
    kinds = dict.fromkeys(each.kind for each in formats._formats if not each.extractor and not each.refusal)
    return textwrap.fill(f"{', '.join(kinds)}.", 120, break_on_hyphens=False) + "\n"


def written(page):
    return _REFUSED.sub(lambda _match: refused(), _TABLE.sub(lambda _match: table(), page))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
