"""Where the site lies, and where it keeps what it writes."""

from __future__ import annotations

from pathlib import Path

from ragsite.settings import env

BASE_DIR = env.BASE_DIR
DATA_DIR = Path(env.text("DATA_DIR", str(BASE_DIR / "var"))).resolve()
