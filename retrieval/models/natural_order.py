"""Sort names by the value of the numbers in them: "part 9" before "part 10"."""

from django.db.models import F, Func, TextField, Value
from django.db.models.functions import Coalesce, Lower, NullIf

# Numbers get leading zeros up to this many digits.
_DIGITS = 10


def build_natural_sort_key(*fields: str) -> Func:
    """Return an immutable SQL expression that sorts rows by the first non-empty field."""
    name = Coalesce(*(NullIf(F(field), Value("")) for field in fields), Value(""))
    padded = _replace_pattern(Lower(name), r"(\d+)", "0" * _DIGITS + r"\1")
    return _replace_pattern(padded, rf"\d*(\d{{{_DIGITS}}})", r"\1")


def _replace_pattern(text: Func, pattern: str, replacement: str) -> Func:
    return Func(
        text,
        Value(pattern),
        Value(replacement),
        Value("g"),
        function="regexp_replace",
        output_field=TextField(),
    )
