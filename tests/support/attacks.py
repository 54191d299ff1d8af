"""Texts on which a regular expression takes longest, derived from its parse tree.

A pattern is slow where it can read the same text in several ways, or again from each of many places. So each repetition
is pumped behind the shortest text that leads to it, each beginning of the pattern is repeated as a whole, and what
comes behind makes the match fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

Pattern = re.Pattern[str] | re.Pattern[bytes]

# From how many repetitions a bounded repeat is pumped.
MANY = 20
REPRESENTATIVES = 3
ALPHABET = "aAzé09 \t\n.,;:!?-_'\"`~*+#|/\\()[]{}<>=@&$%^•–“”‘’«»⟦⟧。\x00\u00ad\u0301😀"
GENERIC = (
    " ", "\n", "\t", " \n", "a", "A", "é", "0", ".", ",", "-", "_", "'", '"', "`", "*", "#", "|", ":", "[", "]", "(",
    "<",
    ">", "{", "=", "/", "a ", "A ", "0 ", "a\n", "a\n\n", "a.", "a. ", "0.", "a-", "- ", "> ", "| ", "|-", "[1", "[1]",
    "[1 ", "[a](", "<a ", "<!---->", "**a", "**a ", "*a ", "_a_", "`a", "`a ", "``` ", "```\n", "\n ", "a b\n", "1. ",
    "e\u0301", "😀", "\u00ad", "“a",
)  # fmt: skip
ENDINGS = ("", "\x00", "\n!a")

_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
_ONE_CHARACTER = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN}


@dataclass(frozen=True)
class Attack:
    prefix: str
    pump: str
    ending: str

    def text(self, characters: int) -> str:
        """About that many characters."""
        return self.prefix + self.pump * max(1, (characters - len(self.prefix)) // len(self.pump)) + self.ending


def attacks(pattern: Pattern) -> list[Attack]:
    """Different attacks, those that the pattern itself gives first."""
    pumped = [*_Derivation(pattern).pumps(), *(("", pump) for pump in GENERIC)]
    return [Attack(prefix, pump, ending) for prefix, pump in dict.fromkeys(pumped) for ending in ENDINGS]


class _Derivation:
    def __init__(self, pattern: Pattern) -> None:
        self._flags = pattern.flags
        source = pattern.pattern
        self._is_bytes = isinstance(source, bytes)
        self._tree = _parser.parse(source, pattern.flags & ~re.DEBUG)
        self._sets: dict[str, str] = {}
        classes = list(self._classes(self._tree))
        literals = {chr(node[1]) for node in classes if node[0] is _constants.LITERAL}
        alphabet = [*dict.fromkeys([*sorted(literals), *ALPHABET])]
        if self._is_bytes:
            alphabet = [sign for sign in alphabet if ord(sign) < 256]
        members = {repr(node): self._members(node, alphabet) for node in classes}
        for name, own in members.items():
            # Each set of classes gets one sign that it contains, first the signs that most classes contain.
            ranked = {sign: tuple(other for other in members if sign in members[other]) for sign in own}
            by_classes = {held: sign for sign, held in reversed(ranked.items())}
            best = sorted(by_classes, key=len, reverse=True)[:REPRESENTATIVES]
            self._sets[name] = "".join(by_classes[held] for held in best)

    def pumps(self) -> list[tuple[str, str]]:
        found = [("", "")]
        self._walk(self._tree, "", found)
        return list(dict.fromkeys((prefix, pump) for prefix, pump in found if pump))

    def _classes(self, tree: Any) -> Iterator[Any]:
        for op, argument in tree:
            if op in _ONE_CHARACTER:
                yield (op, argument)
            else:
                for child in _children(op, argument):
                    yield from self._classes(child)

    def _members(self, node: Any, alphabet: Sequence[str]) -> list[str]:
        alone = _compiler.compile(_parser.SubPattern(self._tree.state, [node]), self._flags & ~re.VERBOSE)
        return [sign for sign in alphabet if alone.fullmatch(sign.encode("latin-1") if self._is_bytes else sign)]

    def _walk(self, tree: Any, prefix: str, found: list[tuple[str, str]]) -> None:
        for op, argument in tree:
            for child in _children(op, argument):
                self._walk(child, prefix, found)
            texts = self._texts(op, argument)
            if op in _REPEATS and argument[1] >= MANY:
                for unit in self._units(argument[2]):
                    found += [(prefix, unit), ("", unit), ("", prefix + unit)]
            for text in texts[1:]:
                found.append(("", prefix + text))
            prefix += texts[0] if texts else ""
            found.append(("", prefix))

    def _units(self, tree: Any) -> list[str]:
        """Different texts that a tree matches."""
        units = [""]
        for op, argument in tree:
            texts = self._texts(op, argument) or [""]
            units = [unit + text for unit in units[:1] for text in texts] + [unit + texts[0] for unit in units[1:]]
        return [unit for unit in dict.fromkeys(units) if unit]

    def _texts(self, op: Any, argument: Any) -> list[str]:
        if op in _ONE_CHARACTER:
            return list(self._sets[repr((op, argument))])
        if op is _constants.BRANCH:
            return list(dict.fromkeys(unit for branch in argument[1] for unit in (self._units(branch) or [""])[:2]))
        if op in _REPEATS:
            return [unit * max(argument[0], 1 if argument[1] else 0) for unit in self._units(argument[2])] + (
                [""] if not argument[0] else []
            )
        if op is _constants.ASSERT_NOT or op is _constants.AT:
            return []
        if op is _constants.ASSERT:
            # The pattern behind a look-ahead mostly reads the same text.
            return self._units(argument[1]) if argument[0] < 0 else []
        return [unit for child in _children(op, argument) for unit in self._units(child)]


def _children(op: Any, argument: Any) -> list[Any]:
    if op in _REPEATS:
        return [argument[2]]
    if op is _constants.SUBPATTERN:
        return [argument[3]]
    if op is _constants.BRANCH:
        return list(argument[1])
    if op in (_constants.ASSERT, _constants.ASSERT_NOT):
        return [argument[1]]
    if op is _constants.ATOMIC_GROUP:
        return [argument]
    if op is _constants.GROUPREF_EXISTS:
        return [tree for tree in argument[1:] if tree]
    return []
