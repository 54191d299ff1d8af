"""The site's settings with a judge of the test's own, who reads SCORES_FILE."""

from __future__ import annotations

import os
from pathlib import Path

from ragsite.settings import *  # noqa: F403
from ragsite.settings import INSTALLED_APPS as _APPS

INSTALLED_APPS = [*_APPS, "tests.support.judged.apps.JudgedConfig"]
SCORES_FILE = Path(os.environ["SCORES_FILE"])
