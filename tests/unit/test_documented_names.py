"""The names of code, settings and metrics in the documentation exist: nothing else fails if one is renamed.

Names that look like words ("search", "weights") are not checked.
"""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Names in other programs: their classes, settings, tables, fields and files.
OF_OTHERS = {
    "demo/handbook/04-how-search-works.md": {"saveReport"},
    "docs/adr/0047-gunicorn.md": {"SO_REUSEPORT"},
    "docs/api.md": {"claude_desktop_config"},
    "docs/citus.md": {
        "citus_create_restore_point", "citus_update_node", "db_constraint", "pg_dist_authinfo", "pg_hba",
    },
    "docs/models.md": {"OLLAMA_CONTEXT_LENGTH"},
    "docs/operations.md": {"max_prepared_statements"},
    "docs/quality.md": {
        "ENABLE_RAG_HYBRID_SEARCH", "RAG_EMBEDDING_ENGINE", "RAG_EMBEDDING_MODEL", "RAG_OPENAI_API_BASE_URL",
    },
    "docs/slack.md": {"event_subscriptions", "request_url", "socket_mode_enabled"},
    "docs/sources.md": {
        "ApiKeyAuthenticator", "DatetimeBasedCursor", "OffsetIncrement", "channel_messages", "document_key",
        "edited_after", "page_size_option",
    },
    # Its table has names before and after they were improved.
    "docs/writing.md": {"_find_published_profile", "_of_trace", "_trace_fields"},
}  # fmt: skip
BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DOTTED = re.compile(r"[A-Za-z_][\w.]*\.([A-Za-z_]\w*)(?:\(.*\))?")
NAME = re.compile(r"\w+_\w+|_\w+|\w*[a-z][A-Z]\w*")


def list_files():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    return listed.stdout.splitlines() or [
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if not {".venv", "var"} & set(path.parts)
    ]


@pytest.fixture(scope="module")
def pages():
    written = [name for name in list_files() if name.endswith(".md") and not name.startswith(("tests/", "CHANGELOG"))]
    # The demo's other documents are about made-up products.
    return [name for name in written if not name.startswith("demo/") or name.startswith("demo/handbook/")]


@pytest.fixture(scope="module")
def existing_names():
    names = set()
    for name in list_files():
        names.update(WORD.findall(name))
        if not name.endswith((".md", ".po", "test_documented_names.py")):
            try:
                names.update(WORD.findall((ROOT / name).read_text()))
            except (UnicodeDecodeError, FileNotFoundError):
                continue  # A picture, or a file that was just deleted.
    return names


def find_names(text):
    """Yield the names of code in a Markdown text, except those in code blocks."""
    for span in SPAN.findall(BLOCK.sub("", text)):
        yield from (word for word in WORD.findall(span) if NAME.fullmatch(word) and not word.endswith("_"))
        if attribute := DOTTED.fullmatch(span):
            yield attribute[1]


def is_known(name, names):
    # Prometheus adds "_total" to the name of a counter.
    return name in names or name.removesuffix("_total") in names


def test_the_names_of_code_in_the_documentation_exist(pages, existing_names):
    missing = {
        f"{page}: {name}"
        for page in pages
        for name in find_names((ROOT / page).read_text())
        if not is_known(name, existing_names) and name not in OF_OTHERS.get(page, ())
    }
    assert sorted(missing) == []


def test_the_names_of_other_programs_are_still_in_the_documentation():
    for page, names in OF_OTHERS.items():
        assert names <= set(find_names((ROOT / page).read_text())), page


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Call `watch.lap(\"name\")` at the end.", ["lap"]),
        ("`SearchTrace.without_errors`, `_READERS`", ["SearchTrace", "without_errors", "without_errors", "_READERS"]),
        ("```\nin_a_block\n```\n`make test`, `search`", []),
        ("`ragsite_searches_total{method=\"rrf\"}`", ["ragsite_searches_total"]),
    ],
)  # fmt: skip
def test_names_are_found_in_a_page(text, names):
    assert list(find_names(text)) == names
