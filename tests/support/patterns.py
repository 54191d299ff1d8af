"""The regular expressions of the product: each place that makes or uses one, and the compiled pattern."""

import ast
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path

from tests.support.attacks import Pattern

ROOT = Path(__file__).parents[2]
PACKAGES = ("core", "chat", "retrieval", "evaluation", "ragsite")
FUNCTIONS = frozenset(["compile", "sub", "subn", "search", "match", "fullmatch", "split", "findall", "finditer"])
SEARCHING = "finditer"
_LOOPED = "looped over"


@dataclass(frozen=True)
class Place:
    """A call of the module ``re``: ``source`` is its text, and ``method`` is how the pattern is used.

    ``patterns`` is empty if they are not known before it runs.
    """

    path: str
    line: int
    source: str
    method: str
    patterns: tuple[Pattern, ...]

    @property
    def name(self):
        return f"{self.path}: {self.source}"


@cache
def places():
    return tuple(
        place for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) for place in _places_in(path)
    )


def _places_in(path):
    if not re.search(r"^\s*import re$", path.read_text(), re.MULTILINE):
        return
    tree = _tree(path)
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    reachable = tuple(_patterns_of(module))
    found = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in FUNCTIONS
        ):
            pattern = _evaluated(node, module)
            method = node.func.attr
            if method == "compile":
                method = _method_of(path, tree, node)
            elif method not in ("match", "fullmatch"):
                method = SEARCHING
            found.append(
                Place(
                    str(path.relative_to(ROOT)),
                    node.lineno,
                    " ".join(ast.unparse(node).split()),
                    method,
                    () if pattern is None else (pattern,),
                )
            )
    yield from found
    known = {pattern for place in found for pattern in place.patterns}
    rest = tuple(pattern for pattern in reachable if pattern not in known)
    if rest:
        yield Place(str(path.relative_to(ROOT)), 0, "composed while it is imported", SEARCHING, rest)


@cache
def _tree(path):
    return ast.parse(path.read_text())


def _evaluated(call, module):
    assert isinstance(call.func, ast.Attribute)
    flags = next((keyword.value for keyword in call.keywords if keyword.arg == "flags"), None)
    at = {"compile": 1, "search": 2, "match": 2, "fullmatch": 2, "findall": 2, "finditer": 2, "split": 3}.get(
        call.func.attr, 4
    )
    if flags is None and len(call.args) > at:
        flags = call.args[at]
    try:
        return re.compile(_value(call.args[0], module), _value(flags, module) if flags is not None else 0)
    except NameError:
        return None


def _value(expression, module):
    return eval(compile(ast.Expression(expression), "<pattern>", "eval"), dict(vars(module)))


def _method_of(path, tree, call):
    """Return how the pattern with this name is used: "match" when never searched."""
    name = next(
        (
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and any(each is call for each in ast.walk(node))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        ),
        "",
    )
    if not name:
        return SEARCHING
    users = [path] if name.startswith("_") else [user for user, text in _sources().items() if name in text]
    used = {method for user in users for method in _uses(user).get(name, ())}
    if _is_mapping(tree, name):
        used.discard(_LOOPED)  # Looping over a dictionary gives its keys.
    if _LOOPED in used:
        return SEARCHING
    if not used:
        return SEARCHING
    if used <= {"fullmatch"}:
        return "fullmatch"
    return "match" if used <= {"match", "fullmatch"} else SEARCHING


@cache
def _uses(path):
    """Return how the source uses each name: the method that it calls on it, or ``SEARCHING``."""
    nodes = list(ast.walk(_tree(path)))
    called = {
        id(_indexed(node.func.value)): node.func.attr
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    looped = {id(node.iter) for node in nodes if isinstance(node, ast.comprehension | ast.For)}
    compared = {id(each) for node in nodes if isinstance(node, ast.Compare) for each in node.comparators}
    uses = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in compared:
            method = called.get(id(node), _LOOPED if id(node) in looped else SEARCHING)
            uses.setdefault(node.id, set()).add(method)
    return uses


def _is_mapping(tree, name):
    """Return whether the name is given to a dictionary: looping over it gives its keys."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Dict)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        for node in tree.body
    )


def _indexed(expression):
    """``NAME`` of ``NAME[key]``."""
    return expression.value if isinstance(expression, ast.Subscript) else expression


@cache
def _sources():
    return {path: path.read_text() for package in PACKAGES for path in (ROOT / package).rglob("*.py")}


def _patterns_of(module):
    for value in list(vars(module).values()):
        yield from _patterns_in(value, 0)


def _patterns_in(value, depth):
    if isinstance(value, re.Pattern):
        yield value
    elif depth > 4:
        return
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _patterns_in(one, depth + 1)
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _patterns_in(one, depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _patterns_in(getattr(value, each.name, None), depth + 1)
