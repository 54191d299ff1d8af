"""A web process with the settings in docs/operations.md for a site behind a proxy: `check --deploy` reports no problem.

DeepEval is not imported, and without a collector OpenTelemetry neither.
"""

import os
import re
import subprocess
import sys

from django.conf import settings


def documented():
    text = (settings.BASE_DIR / "docs/operations.md").read_text()
    section = text.split("## Behind a proxy")[1].split("\n## ")[0]
    block = re.search(r"```ini\n(.*?)```", section, re.DOTALL)
    assert block
    return dict(line.split("=", 1) for line in block[1].splitlines())


WEB_PROCESS = """
import sys
import django
django.setup()
from django.conf import settings
from django.contrib import admin
from django.core.checks import run_checks
from django.urls import get_resolver
import ragsite.asgi
admin.autodiscover()
get_resolver().url_patterns
assert settings.SECURE_HSTS_INCLUDE_SUBDOMAINS
print([each.id for each in run_checks(include_deployment_checks=True)])
settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = False
print([each.id for each in run_checks(include_deployment_checks=True)])
unwanted = {"deepeval", "nest_asyncio", "openai", "opentelemetry"}
print(sorted(name for name in sys.modules if name.split(".")[0] in unwanted))
"""


def test_the_documented_settings_are_clean_what_is_switched_off_is_told_and_no_more_is_imported_than_needed(tmp_path):
    assert documented()["HTTPS"] == "true"
    checked = subprocess.run(
        [sys.executable, "-c", WEB_PROCESS],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DATA_DIR": str(tmp_path), **documented()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.splitlines() == ["[]", "['security.W005']", "[]"]
