"""Figures of the product's shape: `python -m tests.support.house` prints them."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("ragsite", "chat", "retrieval", "evaluation")
_PUBLIC_CLASS = re.compile(r"^class ([^\W_]\w*)[(:\[]", re.MULTILINE)
# Django finds these by their name.
_FOUND_BY_NAME = {"Command"}


def read_modules() -> dict[Path, str]:
    """The text of each module of the product, migrations left out."""
    paths = (path for app in APPS for path in sorted((ROOT / app).rglob("*.py")) if "migrations" not in path.parts)
    return {path.relative_to(ROOT): path.read_text() for path in paths}


def repeated_class_names(texts: dict[Path, str]) -> dict[str, list[str]]:
    """Public names that classes of several modules have. A class within a class is named together with it."""
    homes = defaultdict(list)
    for path, text in texts.items():
        for name in _PUBLIC_CLASS.findall(text):
            if name not in _FOUND_BY_NAME:
                homes[name].append(str(path))
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def modules_by_folder(texts: dict[Path, str]) -> Counter[str]:
    """How many modules each folder holds, its ``__init__`` and subfolders not counted."""
    return Counter(str(path.parent) for path in texts if path.name != "__init__.py")


def main() -> None:
    texts = read_modules()
    lines = {path: text.count("\n") for path, text in texts.items()}
    for app in APPS:
        own = [path for path in lines if path.parts[0] == app]
        at_root = sum(len(path.parts) == 2 for path in own)
        print(f"{app}: {sum(lines[path] for path in own):,} lines, {len(own)} modules, {at_root} of them at its root")
    print(f"all: {sum(lines.values()):,} lines")
    longest = max(lines, key=lines.__getitem__)
    print(f"longest module: {longest}, {lines[longest]} lines; {sum(count > 300 for count in lines.values())} over 300")
    print(
        "largest folders:", ", ".join(f"{folder} {count}" for folder, count in modules_by_folder(texts).most_common(5))
    )
    functions = [
        ((node.end_lineno or 0) - node.lineno + 1, f"{path}: {node.name}")
        for path, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    print("longest function: {1}, {0} lines".format(*max(functions)))
    print("lines with [str, Any]:", sum("[str, Any]" in line for text in texts.values() for line in text.splitlines()))
    print("class names of several modules:", len(repeated_class_names(texts)))


if __name__ == "__main__":
    main()
