"""Count the sentence patterns that make code and documents hard to read.

``python -m tests.support.prose [PATH...]`` lists each place; without paths, it counts the whole repository by kind.
docs/writing.md has a better form of each pattern.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("core", "retrieval", "chat", "evaluation", "ragsite", "bench")
# This page quotes sentences to avoid.
WRITING = "docs/writing.md"
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "demo/handbook/*.md")

_START = r"(?:^|(?<=[.;:!?]\s))"
PATTERNS = {
    "opens with What, Who, Whose or That": re.compile(
        _START + r"(?:What|Who|Whoever|Whose|That|Those)\b(?! (?:is|are)\b)(?![^.]*\?)"
    ),
    "opens with a phrase before the subject": re.compile(
        _START + r"(?:Of|By|Among|Beside|Behind|Within|Without|Up to|As far as|Where|With) [^.;:]{3,60}[,:]? "
    ),
    "hold, holds, held": re.compile(r"\b(?:holds?|held)\b"),
    "stand, stands, stood": re.compile(r"\b(?:stands?|stood)\b"),
    "that of, those of": re.compile(r"\b(?:that|those) of\b"),
    "nobody, nothing": re.compile(r"\b(?:nobody|nothing)\b", re.IGNORECASE),
    "tells, told, knows": re.compile(r"\b(?:tells?|told|knows?)\b"),
    "anew, so many, so long": re.compile(r"\b(?:anew|so many|so long|as it stands|put right|goes on|came of)\b"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A text and where it was found. ``kind`` is docstring, comment, page or message."""

    path: str
    line: int
    kind: str
    text: str


@dataclass
class Count:
    """The number of words, and of each pattern."""

    words: int = 0
    patterns: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PATTERNS, 0))

    def __add__(self, other: Count) -> Count:
        patterns = {name: number + other.patterns[name] for name, number in self.patterns.items()}
        return Count(self.words + other.words, patterns)

    @property
    def per_10_000(self) -> float:
        return 10_000 * sum(self.patterns.values()) / max(self.words, 1)


def find_patterns(text: str) -> dict[str, int]:
    """Return how often the text has each pattern; patterns that it lacks are left out."""
    return {name: len(found) for name, pattern in PATTERNS.items() if (found := pattern.findall(text))}


def count(places: Iterable[Place]) -> Count:
    """Return the sum of all places."""
    counted = Count()
    for place in places:
        counted.words += len(place.text.split())
        for name, number in find_patterns(place.text).items():
            counted.patterns[name] += number
    return counted


def read_python(source: str, path: str) -> Iterator[Place]:
    """Yield the docstrings and the comments of a module; comments on consecutive lines are one text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            found := ast.get_docstring(node)
        ):
            yield Place(path, getattr(node, "lineno", 1), "docstring", " ".join(found.split()))
    block: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, text = token.start[0], token.string.lstrip("#! ").strip()
        if block and block[-1][0] != line - 1:
            yield Place(path, block[0][0], "comment", " ".join(each for _, each in block))
            block = []
        block.append((line, text))
    if block:
        yield Place(path, block[0][0], "comment", " ".join(each for _, each in block))


def read_page(text: str, path: str) -> Iterator[Place]:
    """Yield the paragraphs of a Markdown page, without its code, quotations and links' addresses."""
    text = re.sub(
        r"^(```|~~~).*?^\1", lambda found: "\n" * found.group().count("\n"), text, flags=re.MULTILINE | re.DOTALL
    )
    line = 1
    for paragraph in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) ))", text):
        if shown := re.sub(r"\]\([^)]*\)|`[^`]*`|[*_\[\]|]|^\s*(?:#+|[-*]|\d+\.)\s+", " ", paragraph).strip():
            yield Place(path, line, "page", " ".join(shown.split()))
        line += paragraph.count("\n")


def read_messages(root: Path = ROOT) -> Iterator[Place]:
    """Yield the site's texts for users, as the catalogue of translations has them."""
    for name in list_files(root):
        if not name.endswith("LC_MESSAGES/django.po"):
            continue
        text = (root / name).read_text(encoding="utf-8")
        for found in re.finditer(r'^msgid(?:_plural)? ((?:".*"\n)+)', text, re.MULTILINE):
            message = "".join(ast.literal_eval(line) for line in found.group(1).splitlines())
            if message:
                line = text.count("\n", 0, found.start()) + 1
                yield Place(name, line, "message", " ".join(message.split()))


def list_files(root: Path = ROOT) -> list[str]:
    """Return the tracked and the new files, without ignored ones."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [name for name in listed.stdout.splitlines() if (root / name).exists()]


def read_code(folders: Iterable[str], root: Path = ROOT) -> Iterator[Place]:
    """Yield the docstrings and comments of the Python files in these folders; migrations are left out."""
    wanted = set(folders)
    for name in list_files(root):
        if name.endswith(".py") and name.split("/")[0] in wanted and "/migrations/" not in name:
            yield from read_python((root / name).read_text(encoding="utf-8"), name)


def read_pages(root: Path = ROOT) -> Iterator[Place]:
    """Yield the paragraphs of the documentation and the handbook."""
    for pattern in PAGES:
        for path in sorted(root.glob(pattern)):
            if path != root / WRITING:
                yield from read_page(path.read_text(encoding="utf-8"), str(path.relative_to(root)))


def _read_paths(paths: Iterable[str]) -> Iterator[Place]:
    for given in paths:
        path = Path(given)
        files = sorted(path.rglob("*.py")) + sorted(path.rglob("*.md")) if path.is_dir() else [path]
        for file in files:
            if "migrations" not in file.parts:
                read = read_page if file.suffix == ".md" else read_python
                yield from read(file.read_text(encoding="utf-8"), str(file))


def main() -> None:
    if paths := sys.argv[1:]:
        places = list(_read_paths(paths))
        for place in places:
            if found := find_patterns(place.text):
                print(f"{place.path}:{place.line}: {place.kind}: {'; '.join(found)}\n    {place.text[:300]}")
        print(f"{count(places).per_10_000:.0f} per 10,000 words ({count(places).words} words)")
        return
    for kind, found in {
        "product": count(read_code(APPS)),
        "tests": count(read_code(["tests"])),
        "pages": count(read_pages()),
        "messages": count(read_messages()),
    }.items():
        print(f"{kind}: {found.per_10_000:.0f} per 10,000 words, of {found.words}")
        for name, number in found.patterns.items():
            print(f"    {number:5} {name}")


if __name__ == "__main__":
    main()
