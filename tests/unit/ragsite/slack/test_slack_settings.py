"""Half settings of Slack are refused at start, with the setting that is missing."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from ragsite.checks import check_slack_site_url
from tests.support.fresh_settings import fresh_settings

WHOLE = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"SLACK_BOT_TOKEN": "xoxb-1"}, "needs SLACK_APP_TOKEN .* or SLACK_SIGNING_SECRET"),
        ({"SLACK_APP_TOKEN": "xapp-1"}, "need SLACK_BOT_TOKEN"),
        ({"SLACK_SIGNING_SECRET": "secret"}, "need SLACK_BOT_TOKEN"),
        ({"SLACK_CHANNELS": "C1=handbook"}, "need SLACK_BOT_TOKEN"),
        (WHOLE | {"SLACK_BOT_TOKEN": "xapp-1"}, "SLACK_BOT_TOKEN must begin with xoxb-"),
        (WHOLE | {"SLACK_APP_TOKEN": "xoxb-1"}, "SLACK_APP_TOKEN must begin with xapp-"),
        (WHOLE | {"SLACK_CHANNELS": "*=handbook@slack-hr"}, r"\* may not"),
    ],
)
def test_half_settings_are_refused(environment, sentence):
    with pytest.raises(ImproperlyConfigured, match=sentence):
        fresh_settings(**environment)


def test_without_the_package_the_requirements_are_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImproperlyConfigured, match="requirements-slack.txt"):
        fresh_settings(**WHOLE)


def test_whole_settings_are_read_and_links_have_the_name_of_the_site():
    found = fresh_settings(
        **WHOLE, SLACK_CHANNELS="*=faq,C1=hr@slack-hr", ALLOWED_HOSTS="ask.example.org", HTTPS="true"
    )
    assert found.SLACK_CHANNELS == {"*": "faq", "C1": "hr@slack-hr"}
    assert found.SITE_URL == "https://ask.example.org"
    assert not fresh_settings().SLACK_BOT_TOKEN


def test_a_site_without_a_name_is_warned_of(settings):
    settings.SLACK_BOT_TOKEN, settings.SITE_URL = "xoxb-1", "http://localhost"
    assert [warning.id for warning in check_slack_site_url()] == ["ragsite.W001"]
    settings.SITE_URL = "https://ask.example.org"
    assert check_slack_site_url() == []
    settings.SLACK_BOT_TOKEN, settings.SITE_URL = "", "http://localhost"
    assert check_slack_site_url() == []
