"""The site's settings, with other values of some constants from the JSON in SITE_CONSTANTS.

Measurements and tests start the site's processes with this module (``bench.build_site_environment``).
"""

import json
import os

from ragsite.settings import *  # noqa: F403

globals().update(json.loads(os.environ.get("SITE_CONSTANTS", "{}")))
