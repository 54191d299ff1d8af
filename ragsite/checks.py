from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, register


@register()
def check_slack_site_url(**_: Any) -> list[CheckMessage]:
    if settings.SLACK_BOT_TOKEN and settings.SITE_URL.partition("://")[2] in ("localhost", "127.0.0.1"):
        message = (
            "Links in Slack begin with the first name in ALLOWED_HOSTS, which is this machine: name the site there."
        )
        return [checks.Warning(message, id="ragsite.W001")]
    return []
