"""The site's settings with other values for some of its constants, for processes that measurements and tests
start: a JSON object in SITE_CONSTANTS (``bench.with_constants``)."""

import json
import os

from ragsite.settings import *  # noqa: F403

globals().update(json.loads(os.environ.get("SITE_CONSTANTS", "{}")))
