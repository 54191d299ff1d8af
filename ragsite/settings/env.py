from __future__ import annotations

import contextlib
import math
import os
import secrets
from pathlib import Path
from typing import TypedDict, TypeVar
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from dotenv import load_dotenv
from psycopg.conninfo import conninfo_to_dict

BASE_DIR = Path(__file__).resolve().parents[2]
Number = TypeVar("Number", int, float)


def read_string(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def read_flag(name: str, default: bool) -> bool:
    value = read_string(name).lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")


def read_number(name: str, default: Number) -> Number:
    value = read_string(name)
    try:
        return type(default)(value) if value else default
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ImproperlyConfigured(f"{name} must be {kind}, not {value!r}.") from None


def read_names(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in read_string(name, default).split(",") if part.strip()]


def read_pairs(name: str) -> dict[str, str]:
    result = {}
    for part in read_names(name):
        key, separator, value = part.rpartition("=")
        if not separator or not key.strip() or not value.strip():
            raise ImproperlyConfigured(f"{name} must be pairs such as theirs=ours, not {part!r}.")
        result[key.strip()] = value.strip()
    return result


def read_two_numbers(name: str, first: float, second: float) -> tuple[float, float]:
    """Return two comma-separated numbers, each 0 or more, or the defaults ``first`` and ``second``."""
    given = read_names(name) or [str(first), str(second)]
    try:
        first, second = map(float, given)
    except ValueError:
        first = second = -1
    if not (0 <= first < math.inf and 0 <= second < math.inf):
        raise ImproperlyConfigured(f"{name} must be two numbers separated by a comma, not {','.join(given)!r}.")
    return first, second


def read_https_url(name: str) -> str:
    """Return the address in a setting. It must use HTTPS, unless it is on this machine."""
    value = read_string(name).rstrip("/")
    parts = urlsplit(value)
    if value and parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1"):
        raise ImproperlyConfigured(f"{name} must begin with https://, not {value!r}.")
    return value


def read_mail_server(name: str) -> tuple[str, int, str, str]:
    """Return host ("" without a value), port, user and password of ``smtp://user:password@host:587``."""
    parts = urlsplit(read_string(name))
    try:
        host, port = parts.hostname or "", parts.port or 587
    except ValueError:
        host, port = "", 0
    if read_string(name) and not (parts.scheme == "smtp" and host):
        # The value may contain a password.
        raise ImproperlyConfigured(f"{name} must look like smtp://user:password@mail.example.org:587.")
    return host, port, unquote(parts.username or ""), unquote(parts.password or "")


def load_or_create_secret_key(data_dir: Path) -> str:
    path = data_dir / "secret_key"
    if not path.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".secret_key.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)  # This fails if another process was faster, whose key is then used.
        fresh.unlink()
    return path.read_text()


class DatabaseParameters(TypedDict):
    """Parameters of Django's database connection. ``OPTIONS`` come from the query string of the database URL."""

    NAME: str
    USER: str
    PASSWORD: str
    HOST: str
    PORT: str
    OPTIONS: dict[str, str | int]


def parse_database_url(url: str) -> DatabaseParameters:
    parts = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
    return {
        "NAME": str(parts.pop("dbname", "ragsite")),
        "USER": str(parts.pop("user", "")),
        "PASSWORD": str(parts.pop("password", "")),
        "HOST": str(parts.pop("host", "")),
        "PORT": str(parts.pop("port", "")),
        "OPTIONS": parts,
    }


if read_flag("RAGSITE_DOTENV", True):
    load_dotenv(BASE_DIR / ".env")
DATA_DIR = Path(read_string("DATA_DIR", str(BASE_DIR / "var"))).resolve()
