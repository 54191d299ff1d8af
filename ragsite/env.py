"""The process environment, read with a type and a clear error, and what settings derive from it. Only they use it."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

Number = TypeVar("Number", int, float)


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def flag(name: str, default: bool) -> bool:
    value = text(name).lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")


def integer(name: str, default: int) -> int:
    return _convert(name, default, int, "a whole number")


def number(name: str, default: float) -> float:
    return _convert(name, default, float, "a number")


def _convert(name: str, default: Number, convert: Callable[[str], Number], kind: str) -> Number:
    value = text(name)
    try:
        return convert(value) if value else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be {kind}, not {value!r}.") from None


def names(name: str, default: str = "") -> list[str]:
    """Comma-separated values, blanks dropped."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def kept_secret_key(data_dir: Path) -> str:
    """The secret key in the data directory, made at first use."""
    path = data_dir / "secret_key"
    if not path.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".secret_key.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)  # fails when another process was first, whose key then counts
        fresh.unlink()
    return path.read_text()


def database_parameters(url: str) -> dict[str, Any]:
    """What Django asks of a database, from a libpq URL; options such as sslmode included."""
    parts = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
    return {
        "NAME": parts.pop("dbname", "ragsite"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "OPTIONS": parts,
    }
