"""Format cell values as spreadsheet programs show them.

The result does not depend on the locale: a decimal point, no thousands separator, a minus, days as YYYY-MM-DD.
"""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

# The parts of a number format: text, a space, a colour or condition, placeholders, any other character.
_TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|([_*].)|\[([^\]]*)\]'
    r"|(General|AM/PM|A/P|E[+-]|y+|e+(?![+-])|m+|d+|h+|s+(?:\.0+)?|[0#?@%.,/;])|(.)",
    re.I | re.S,
)
_ELAPSED = re.compile("h+|m+|s+", re.I)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?\d+(?:\.\d+)?)")
_ORDER = {"<": (-1,), "=": (0,), ">": (1,), "<=": (-1, 0), ">=": (0, 1), "<>": (-1, 1)}
_DAY_ZERO = datetime(1899, 12, 30)
_MINUTE = timedelta(minutes=1)
_UNITS = {"h": timedelta(hours=1), "m": _MINUTE, "i": _MINUTE, "s": timedelta(seconds=1)}
_PLACE = re.compile("[0#?]")
_SCALING = re.compile("(?<=[0#?]),+(?![0#?,])")
_FRACTION = re.compile(r"(?:([0#?]+)[^0#?/]+)?[0#?]+/(\d+|[0#?]+)")
_POWER = re.compile("E([+-])([0#?]+)")
_LONGEST_FORMAT = 255
_MOST_DECIMALS = 30
_CONTEXT = Context(prec=400)


class _Token(NamedTuple):
    """A part of a spreadsheet's number format. The ``kind`` "elapsed" is a duration."""

    kind: str
    words: str


class _Section(NamedTuple):
    condition: str
    tokens: list[_Token]

    def has_any_sign(self, signs: str) -> bool:
        return any(token.kind != "words" and token.words[0] in signs for token in self.tokens)


def show_value(value: object, number_format: str = "") -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    sections = _read_format(number_format[:_LONGEST_FORMAT] or "General")
    if isinstance(value, str):
        section = sections[3] if len(sections) > 3 else sections[-1]
        pieces = [value if token.kind == "sign" else token.words for token in section.tokens]
        return "".join(pieces) if value and section.has_any_sign("@") else value
    if isinstance(value, (date, time, timedelta)):
        is_day = isinstance(value, date) and getattr(value, "time", time)() == time()
        usual = "[h]:mm" if isinstance(value, timedelta) else "hh:mm" if isinstance(value, time) else "yyyy-mm-dd hh:mm"
        has_moment = sections[0].has_any_sign("yemdhs")
        return _show_moment(
            value, (sections if has_moment else _read_format("yyyy-mm-dd" if is_day else usual))[0].tokens
        )
    if not isinstance(value, (int, float)) or not isfinite(value):
        return str(value)
    at = _choose_section_index(sections, value)
    tokens = sections[at].tokens
    if sections[at].has_any_sign("yemdhs"):
        return _show_moment(timedelta(days=value), tokens) if -690_000 < value < 2_900_000 else show_number(value)
    shown = _show_number(abs(value), tokens)
    if value == 0 and shown and not re.search(r"\w", shown):
        # The format shows zero without a digit, for example as a dash.
        return _show_number(value, sections[0].tokens)
    if value >= 0 or not re.search("[1-9]", shown):
        return shown
    if at == 0:
        return f"-{shown}"
    plain = " ".join(re.sub("[()]", " ", shown).split())
    return f"-{plain}" if plain != shown or shown == _show_number(-value, sections[0].tokens) else shown


def show_number(value: float) -> str:
    """Return a number with at most fifteen digits, as in spreadsheets."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return str(int(value))
    words = f"{value:.15g}"
    return f"{value:.15f}".rstrip("0") if "e-0" in words else words


@lru_cache(maxsize=1_000)
def _read_format(number_format: str) -> list[_Section]:
    sections = [_Section("", [])]
    for quoted, escaped, blank, bracket, sign, other in (match.groups("") for match in _TOKEN.finditer(number_format)):
        tokens = sections[-1].tokens
        if sign == ";":
            sections.append(_Section("", []))
        elif sign:
            is_power = sign[1:] in ("+", "-")
            tokens.append(_Token("sign", sign.upper() if is_power or sign[0] in "aA" else sign.lower()))
        elif bracket.startswith("$"):
            tokens.append(_Token("words", bracket[1:].partition("-")[0]))
        elif _ELAPSED.fullmatch(bracket):
            tokens.append(_Token("elapsed", bracket.lower()))
        elif _CONDITION.fullmatch(bracket):
            sections[-1] = _Section(bracket, tokens)
        else:
            tokens.append(_Token("words", " " if blank[:1] == "_" or blank == "* " else quoted or escaped or other))
    return sections


def _choose_section_index(sections: Sequence[_Section], value: float) -> int:
    numeric = [section for section in sections[:3] if not section.has_any_sign("@")] or sections[:1]
    if any(section.condition for section in numeric):
        for at, section in enumerate(numeric):
            match = _CONDITION.fullmatch(section.condition)
            if not match and (at == len(numeric) - 1 or (at == 1 and value < 0)):
                return at
            limit = float(match[2]) if match else 0.0
            if (value > limit) - (value < limit) in _ORDER[match[1] if match else ">"]:
                return at
        return len(numeric) - 1
    return 1 if value < 0 and len(numeric) > 1 else 2 if value == 0 and len(numeric) > 2 else 0


def _show_number(value: float, tokens: Sequence[_Token]) -> str:
    if not any(token.kind == "sign" and token.words in "0#?" for token in tokens):
        usual = ("general", "@")
        is_plain = [token.words in usual and token.kind == "sign" for token in tokens]
        pieces = [show_number(value) if plain else token.words for plain, token in zip(is_plain, tokens, strict=True)]
        return " ".join("".join(pieces).split())
    # Private-use characters replace all but placeholders (such as #) and digits, which can be a denominator.
    pattern = "".join(
        token.words if token.kind == "sign" or token.words in tuple("123456789") else chr(0xE000 + at)
        for at, token in enumerate(tokens)
    )
    scale = 2 * pattern.count("%") - 3 * sum(map(len, _SCALING.findall(pattern)))
    number = Decimal(show_number(value)).scaleb(scale)
    pattern = pattern.replace(",", "")
    if fraction := _FRACTION.search(pattern):
        pattern = pattern[: fraction.start()] + _show_fraction(number, fraction) + pattern[fraction.end() :]
    else:
        pattern = _show_digits(number, pattern)
    words = re.sub("[\ue000-\uf8ff]", lambda match: tokens[ord(match[0]) - 0xE000].words, pattern)
    return " ".join(words.split())


def _show_fraction(number: Decimal, found: re.Match[str]) -> str:
    whole, denominator = found[1], found[2]
    value = Fraction(number)
    if denominator.isdigit() and int(denominator):
        top, bottom = round(value * int(denominator)), int(denominator)
    else:
        top, bottom = value.limit_denominator(10 ** min(len(denominator), 9) - 1).as_integer_ratio()
    if whole is None:
        return f"{top}/{bottom}"
    count, rest = divmod(top, bottom)
    return " ".join([str(count)] * bool(count or not rest) + [f"{rest}/{bottom}"] * bool(rest))


def _show_digits(number: Decimal, pattern: str) -> str:
    power = _POWER.search(pattern)
    behind = ""
    if power:
        pattern, behind = pattern[: power.start()], pattern[power.end() :]
        step = max(1, len(_PLACE.findall(pattern.partition(".")[0])))
        exponent = number.adjusted() // step * step if number else 0
        number = number.scaleb(-exponent)
        sign = "-" if exponent < 0 else "+" * (power[1] == "+")
        behind = f"E{sign}{abs(exponent):0{power[2].count('0')}d}{behind}"
    whole, _, rest = pattern.partition(".")
    decimals = min(len(_PLACE.findall(rest)), _MOST_DECIMALS)
    rounded = number.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _CONTEXT)
    before, _, after = f"{rounded:f}".partition(".")
    needed = iter(_trim_optional_zeros(after, rest))
    shown = _PLACE.sub(lambda match: next(needed, ""), rest)
    return f"{_show_integer_part(before.lstrip('0'), whole)}{'.' * bool(re.match('[0-9]', shown))}{shown}{behind}"


def _trim_optional_zeros(digits: str, pattern: str) -> str:
    least = "".join(_PLACE.findall(pattern)).rfind("0") + 1
    return digits[:least] + digits[least:].rstrip("0")


def _show_integer_part(digits: str, pattern: str) -> str:
    count = len(_PLACE.findall(pattern))
    if not count:
        return pattern + digits
    # Each placeholder takes one digit, but the leftmost takes all remaining digits. After a 0 in the format, missing
    # digits are shown as 0.
    filled = digits.rjust(count)
    pieces = iter([filled[: len(filled) - count + 1], *filled[len(filled) - count + 1 :]])
    first = pattern.find("0")

    def fill(match: re.Match[str]) -> str:
        piece = next(pieces)
        return piece.strip() or "0" * (first >= 0 and match.start() >= first)

    return _PLACE.sub(fill, pattern)


def _show_moment(value: date | time | timedelta, tokens: Sequence[_Token]) -> str:
    if isinstance(value, time):
        value = datetime.combine(_DAY_ZERO, value.replace(tzinfo=None))
    if isinstance(value, date):
        value = datetime.fromisoformat(value.isoformat()).replace(tzinfo=None) - _DAY_ZERO
    parts = ["" if token.kind == "words" or token.words[0] not in "yemdhsA" else token.words for token in tokens]
    if not any("." in part for part in parts):
        value = timedelta(seconds=round(value.total_seconds()))
    known = [at for at, part in enumerate(parts) if part]
    for before, at, after in zip([None, *known], known, [*known[1:], None], strict=False):
        is_clock = (before is not None and parts[before][0] == "h") or (after is not None and parts[after][0] == "s")
        if is_clock and parts[at] in ("m", "mm"):
            parts[at] = parts[at].replace("m", "i")
    has_noon = any(part[:1] == "A" for part in parts)
    shown = [
        f"{abs(value) // _UNITS[part[0]]:0{len(part)}d}"
        if token.kind == "elapsed"
        else _show_part(_DAY_ZERO + value, part, has_noon)
        if part
        else token.words
        for token, part in zip(tokens, parts, strict=True)
    ]
    is_elapsed = any(token.kind == "elapsed" for token in tokens)
    kinds = {part[:1] if part not in ("ddd", "dddd") else "weekday" for part in parts}
    if is_elapsed or not {"m", "d"} <= kinds or not {"y", "e"} & kinds:
        return "-" * (is_elapsed and value < timedelta(0)) + " ".join("".join(shown).split())
    weekday = [words for words, part in zip(shown, parts, strict=True) if part in ("ddd", "dddd")]
    is_day = not value % timedelta(days=1)
    clock = [at for at in known if parts[at][0] in "hisA" and not is_day]
    hour = "".join(shown[clock[0] : clock[-1] + 1]) if clock else ""
    return " ".join([*weekday, (_DAY_ZERO + value).date().isoformat(), *hour.split()])


def _show_part(moment: datetime, part: str, has_noon: bool) -> str:
    match part[0]:
        case "y" | "e":
            return f"{moment.year % 100:02d}" if part in ("y", "yy") else f"{moment.year:04d}"
        case "m" | "d" if len(part) > 2:
            name = month_name[moment.month] if part[0] == "m" else day_name[moment.weekday()]
            return name[:3] if len(part) == 3 else name[:1] if len(part) == 5 else name
        case "A":
            noon = "PM" if moment.hour > 11 else "AM"
            return noon if len(part) > 3 else noon[0]
        case "h":
            number = (moment.hour - 1) % 12 + 1 if has_noon else moment.hour
        case "s":
            decimals = f"{moment.microsecond:06d}"[: len(part.partition(".")[2])]
            return f"{moment.second:0{len(part.partition('.')[0])}d}{'.' * bool(decimals)}{decimals}"
        case kind:
            number = {"m": moment.month, "d": moment.day, "i": moment.minute}[kind]
    return f"{number:0{len(part)}d}"
