"""The names in the documents exist: pages, headings, files, modules, settings."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
APPS = ("bench", "chat", "core", "evaluation", "ragsite", "retrieval", "tests")
FOLDERS = [ROOT / name for name in (*APPS, "demo", "docs", "templates", ".ci", ".github")]
FILES = [path.relative_to(ROOT) for folder in FOLDERS for path in folder.rglob("*") if path.is_file()]

_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?<![\w./-])[\w.-]+(?:/[\w.-]+)*/(?:[\w-]+\.\w+|(?![\w.]))")
_DOTTED = re.compile(rf"(?<![\w./-])(?:{'|'.join(APPS)})(?:\.(?!(?:add|change|delete|view)_)[A-Za-z_]\w*)+(?![\w/-])")
# These are files that a running site writes, addresses, media types, and users' files.
_NOT_OURS = re.compile(r"^(?:var|DATA_DIR|media|api|application|BAAI|sets|qrels|\.venv|[\w.]*example)/")


def _prose(document):
    return _FENCED.sub("", document.read_text())


def _slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _exists(path):
    """Return whether a file or a folder of the project has this path, or one that ends with it."""
    return any(f"/{path}" in f"/{file}" if path.endswith("/") else f"/{file}".endswith(f"/{path}") for file in FILES)


def _is_defined(name):
    """Return whether a dotted name is a module, or a name that the longest module it begins with defines or imports."""
    parts = name.split(".")
    for length in range(len(parts), 1, -1):
        module = ROOT.joinpath(*parts[:length])
        source = next((path for path in (module.with_suffix(".py"), module / "__init__.py") if path.exists()), None)
        if source and length == len(parts):
            return True
        if source:
            name = rf"{parts[length]}\b"
            defined = rf"^\s*(?:async )?(?:def|class) {name}|^{name}\s*[:=]|^from .*\b{name}|^    {name},?$"
            return re.search(defined, source.read_text(), re.MULTILINE) is not None
    return False


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    broken = []
    for target, heading in _LINK.findall(_prose(document)):
        path = (document.parent / target).resolve() if target else document
        if not path.exists() or (heading and heading not in map(_slug, _HEADING.findall(path.read_text()))):
            broken.append(f"{target}#{heading}" if heading else target)
    assert not broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_files_and_modules_that_are_named_exist(document):
    code = _CODE.findall(_prose(document))
    paths = {path for text in code for path in _PATH.findall(text) if not _NOT_OURS.match(path)}
    names = {name for text in code for name in _DOTTED.findall(text)}
    missing = [path for path in paths if not _exists(path)] + [name for name in names if not _is_defined(name)]
    assert not sorted(missing)


def test_hooks_run_the_ruff_of_the_requirements():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    version = config["repos"][0]["rev"].removeprefix("v")
    assert f"ruff=={version} " in (ROOT / "requirements-dev.txt").read_text()


def test_every_variable_of_the_containers_is_explained():
    text = (ROOT / "compose.yaml").read_text()
    services = yaml.safe_load(text)["services"].values()
    names = {name for service in services if "build" in service for name in service["environment"]}
    names |= set(re.findall(r"\$\{(\w+)", text))
    explained = set(re.findall(r"^(?:# ?)?([A-Z_0-9]+)=", (ROOT / ".env.example").read_text() + text, re.MULTILINE))
    assert names
    assert not names - explained


def test_settings_that_have_a_page_are_explained():
    page, example = ((ROOT / name).read_text() for name in ("docs/settings.md", ".env.example"))
    named = {name for row in re.findall(r"^\|[^|]*\|([^|]*)\|", page, re.MULTILINE) for name in _CODE.findall(row)}
    assert named
    assert not named - set(re.findall(r"^#?([A-Z_0-9]+)=", example, re.MULTILINE))
