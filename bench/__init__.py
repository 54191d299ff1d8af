"""Commands that measure the site and put it under load. They are for development; the site imports none of them.

  .venv/bin/python -m bench.reliability.kills      kill -9 at random points, and what is lost
  .venv/bin/python -m bench.reliability.endurance  thousands of answers in a row, and what grows
  .venv/bin/python -m bench.reliability.zoo        uploads of hostile and harmless files at the same time

Each starts its own site with `manage.py serve`, on a new data directory and a loopback port, and stops it.
"""

import json
import os

# Celery's application reads this variable when it is imported.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")


def build_site_environment(**values: object) -> dict[str, str]:
    """Return environment variables that override settings of the site's processes.

    ``values`` has the new values by name of the setting. The module ``bench.settings`` reads the variables.
    """
    return {"DJANGO_SETTINGS_MODULE": "bench.settings", "SITE_CONSTANTS": json.dumps(values)}
