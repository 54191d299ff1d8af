"""The Slack app's process, on the scripted Slack whose address is the argument."""

import os
import sys

from django.conf import settings

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    settings.SLACK_API_URL = sys.argv[1]
    from ragsite.processes.slack_app import main

    main()
