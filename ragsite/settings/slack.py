from __future__ import annotations

from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured

from ragsite.settings import env

SLACK_BOT_TOKEN = env.read_string("SLACK_BOT_TOKEN")
SLACK_APP_TOKEN = env.read_string("SLACK_APP_TOKEN")
SLACK_SIGNING_SECRET = env.read_string("SLACK_SIGNING_SECRET")
# Each channel has a value `collection@account`. The channel `*` means all other channels and direct messages.
SLACK_CHANNELS = env.read_pairs("SLACK_CHANNELS")
SLACK_API_URL = "https://slack.com/api/"

for _name, _value, _prefix in (
    ("SLACK_BOT_TOKEN", SLACK_BOT_TOKEN, "xoxb-"),
    ("SLACK_APP_TOKEN", SLACK_APP_TOKEN, "xapp-"),
):
    if _value and not _value.startswith(_prefix):
        raise ImproperlyConfigured(f"{_name} must begin with {_prefix}: take the other token of the Slack app.")
if SLACK_BOT_TOKEN and not (SLACK_APP_TOKEN or SLACK_SIGNING_SECRET):
    raise ImproperlyConfigured("SLACK_BOT_TOKEN needs SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP).")
if (SLACK_APP_TOKEN or SLACK_SIGNING_SECRET or SLACK_CHANNELS) and not SLACK_BOT_TOKEN:
    raise ImproperlyConfigured("The settings of Slack need SLACK_BOT_TOKEN.")
if "@" in SLACK_CHANNELS.get("*", ""):
    raise ImproperlyConfigured("SLACK_CHANNELS: name the channels that get an account's rights; * may not.")
if SLACK_BOT_TOKEN and find_spec("slack_bolt") is None:
    raise ImproperlyConfigured("SLACK_BOT_TOKEN needs slack-bolt: pip install -r requirements-slack.txt")
