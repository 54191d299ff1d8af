"""Figures of the product's shape: `python -m tests.support.house [FOLDER]` prints the figures of a checkout.

With `--write` it also puts them into the table of `docs/architecture.md`.
"""

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
APPS = ("ragsite", "chat", "retrieval", "evaluation", "core")
_BESIDE = ("bench", "tests")
_PUBLIC_CLASS = re.compile(r"^class ([^\W_]\w*)[(:\[]", re.MULTILINE)
# Django finds these by their name.
_FOUND_BY_NAME = {"Command"}
_FOLDERS_OF_DJANGO = {"management", "migrations", "templatetags"}
_MODULES_OF_DJANGO = {"__init__", "admin", "apps", "forms", "models", "tasks", "urls", "views"}


def read_modules(root=ROOT):
    """Return the text of each module of the product, migrations left out."""
    paths = (path for app in APPS for path in sorted((root / app).rglob("*.py")) if "migrations" not in path.parts)
    return {path.relative_to(root): path.read_text() for path in paths}


def repeated_class_names(texts):
    """Public names that classes of several modules have. A class within a class is named together with it."""
    homes = defaultdict(list)
    for path, text in texts.items():
        for name in _PUBLIC_CLASS.findall(text):
            if name not in _FOUND_BY_NAME:
                homes[name].append(str(path))
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def repeated_module_names(texts):
    """Modules of one app that have the same name, those left out whose names Django gives."""
    homes = defaultdict(list)
    for path in texts:
        if path.stem not in _MODULES_OF_DJANGO and not _FOLDERS_OF_DJANGO & set(path.parts):
            homes[path.parts[0], path.stem].append(str(path))
    return [paths for paths in homes.values() if len(paths) > 1]


def importers_of(texts):
    """Return the modules of the product that import each module, inside functions and for type checking included."""
    homes = {".".join((path.parent if path.stem == "__init__" else path.with_suffix("")).parts): path for path in texts}
    importers = {path: set() for path in texts}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    home = homes.get(f"{node.module}.{alias.name}") or homes.get(node.module or "")
                    if home and home != path:
                        importers[home].add(path)
    return importers


def modules_of_one_neighbour(importers):
    """Return modules that only one other module, of the same folder, imports; with that module.

    Imports by a package, the settings or Django's ``apps.py`` and ``urls.py`` only to register the module do not count.
    """
    found = {}
    for path, known in importers.items():
        importer = next(iter(known), path)
        registers = importer.stem in _MODULES_OF_DJANGO or path.stem in _MODULES_OF_DJANGO
        if len(known) == 1 and importer.parent == path.parent and not registers:
            found[path] = importer
    return found


def room_of(path):
    """Return the folder directly below its app that a module is in; empty at the root of an app."""
    return "/".join(path.parts[:2]) if len(path.parts) > 2 and not _FOLDERS_OF_DJANGO & set(path.parts) else ""


def count(root=ROOT):
    """Return the figures of a checkout, by their label in the table of `docs/architecture.md`."""
    texts = read_modules(root)
    modules = {path for path in texts if path.stem != "__init__"}
    importers = importers_of(texts)
    single = [path for path in modules if len(importers[path]) == 1]
    neighbours = [path for path in single if next(iter(importers[path])).parent == path.parent]
    lines = {app: sum(text.count("\n") for path, text in texts.items() if path.parts[0] == app) for app in APPS}
    beside = {each: sum(path.read_text().count("\n") for path in (root / each).rglob("*.py")) for each in _BESIDE}
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md")]
    numbers = {
        "lines of Python: the product": sum(lines.values()),
        **{f"lines of `{name}`": number for name, number in {**lines, **beside}.items()},
        "words of the pages of `docs/` and beside it": sum(len(path.read_text().split()) for path in pages),
        "modules, `__init__` and migrations left out": len(modules),
        "of these with one importer": len(single),
        "one importer in the same folder": len(neighbours),
        "the same, without those that only a list imports": len(modules_of_one_neighbour(importers)),
        "modules of fewer than 40 lines": sum(texts[path].count("\n") < 40 for path in modules),
        "names that several modules of an app have": len(repeated_module_names(texts)),
        "parts of the deepest path": max(len(path.parts) for path in modules),
        "settings in `.env.example`": _count_lines(r"^#?[A-Z_0-9]+=", root / ".env.example"),
        "packages in `requirements.txt`": _count_lines(r"^\w", root / "requirements.txt"),
    }
    figures = {label: f"{number:,}" for label, number in numbers.items()}
    for app in APPS:
        own = [path for path in modules if path.parts[0] == app]
        rooms, folders = {room_of(path) for path in own} - {""}, {path.parent for path in own}
        figures[f"rooms, and folders with modules: `{app}`"] = f"{len(rooms)}, {len(folders)}"
    return figures


def _count_lines(pattern, path):
    return len(re.findall(pattern, path.read_text(), re.MULTILINE))


def write_table(figures):
    """Put the figures into the last column of the table."""
    text = PAGE.read_text()
    for label, figure in figures.items():
        text = re.sub(rf"(?m)^(\| {re.escape(label)} \|[^|\n]*\|)[^|\n]*\|$", rf"\g<1> {figure} |", text)
    PAGE.write_text(text)


def main():
    folders = [argument for argument in sys.argv[1:] if argument != "--write"]
    figures = count(Path(folders[0]) if folders else ROOT)
    if "--write" in sys.argv:
        write_table(figures)
    for label, figure in figures.items():
        print(f"{label}: {figure}")


if __name__ == "__main__":
    main()
