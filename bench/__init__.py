"""Commands that measure the site and put it under load. For development; the site imports none of them.

    .venv/bin/python -m bench.reliability.kills      kill -9 at random points, and what is lost
    .venv/bin/python -m bench.reliability.endurance  thousands of answers in a row, and what grows
    .venv/bin/python -m bench.reliability.zoo        hostile files in one burst, with harmless ones among them

Each starts a site of its own with `manage.py serve`, on a fresh data directory and a loopback port, and stops it.
"""

import json
import os

# Before the site is imported: its Celery application reads it.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")


def with_constants(**values: object) -> dict[str, str]:
    """The environment of a process of the site with these values of settings that the environment cannot set."""
    return {"DJANGO_SETTINGS_MODULE": "bench.settings", "SITE_CONSTANTS": json.dumps(values)}
