"""The settings that docs/operations.md gives for a site behind a proxy leave nothing for `check --deploy` to say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from django.conf import settings


def documented() -> dict[str, str]:
    text = (settings.BASE_DIR / "docs/operations.md").read_text()
    section = text.split("## Behind a proxy")[1].split("\n## ")[0]
    block = re.search(r"```ini\n(.*?)```", section, re.DOTALL)
    assert block
    return dict(line.split("=", 1) for line in block[1].splitlines())


def check(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DATA_DIR": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_documented_settings_are_clean(tmp_path: Path) -> None:
    assert documented()["HTTPS"] == "true"
    checked = check(tmp_path, **documented())
    assert checked.returncode == 0, checked.stderr
    assert "no issues (0 silenced)" in checked.stdout


def test_what_is_switched_off_is_told(tmp_path: Path) -> None:
    checked = check(tmp_path, **documented(), HSTS_SUBDOMAINS="false")
    assert checked.returncode == 1
    assert "security.W005" in checked.stderr


def test_a_limit_of_cost_without_prices_is_refused(tmp_path: Path) -> None:
    refused = check(tmp_path, MODEL_COST_A_DAY="5")
    assert refused.returncode != 0
    assert "MODEL_COST_A_DAY needs OPENAI_PRICE_PROMPT" in refused.stderr
    assert "MODEL_COST_A_DAY" not in check(tmp_path, MODEL_COST_A_DAY="5", OPENAI_PRICE_COMPLETION="2").stderr
