"""The process of the Slack app, `python -m ragsite.processes.slack_app`. It uses Slack's Socket Mode."""

from __future__ import annotations

import os
import sys

import django
from django.conf import settings


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    django.setup()
    if not settings.SLACK_BOT_TOKEN:
        sys.exit("SLACK_BOT_TOKEN is not set: there is no Slack app to run.")
    from slack_bolt.adapter.socket_mode import SocketModeHandler
    from slack_sdk.errors import SlackApiError

    from ragsite.slack.receiving import get_app
    from ragsite.slack.replies import Replies

    try:
        replies = Replies()
        if settings.SLACK_APP_TOKEN:
            SocketModeHandler(get_app(), settings.SLACK_APP_TOKEN, concurrency=2).connect()  # type: ignore[no-untyped-call]
    except SlackApiError as error:
        sys.exit(f"Slack refused the tokens: {error.response['error']}.")
    print(f"The Slack app runs, by {'Socket Mode' if settings.SLACK_APP_TOKEN else 'events over HTTP'}.")
    replies.run()


if __name__ == "__main__":
    main()
