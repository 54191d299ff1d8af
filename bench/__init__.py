"""Commands that wear the site out and measure it. For development; the site imports none of them.

    .venv/bin/python -m bench.reliability.kills      kill -9 at random points, and what is lost
    .venv/bin/python -m bench.reliability.endurance  thousands of answers in a row, and what grows
    .venv/bin/python -m bench.reliability.zoo        hostile files in one burst, and innocent ones beside them

Each starts a site of its own with `manage.py serve`, on a fresh data directory and a loopback port, and stops it.
"""

import json
import os

# Before anything of the site is imported: its Celery application looks for it when it is made.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")


def with_constants(**values: object) -> dict[str, str]:
    """The environment of a process of the site in which these settings, which the environment does not say, are so."""
    return {"DJANGO_SETTINGS_MODULE": "bench.settings", "SITE_CONSTANTS": json.dumps(values)}
