import pytest

from chat.models import Answer, Conversation
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db


def test_without_named_sites_or_with_a_login_there_is_no_widget(client, settings):
    for sites, requires_login in (([], False), (["https://www.example.org"], True)):
        settings.WIDGET_SITES, settings.CHAT_REQUIRES_LOGIN = sites, requires_login
        assert client.get("/widget.js").status_code == client.get("/widget/").status_code == 404


def test_the_frame_names_its_sites_and_other_pages_are_not_framed(client, settings):
    settings.WIDGET_SITES = ["https://www.example.org", "https://shop.example.org"]
    response = client.get("/widget/")
    policy = response["Content-Security-Policy"]
    assert "frame-ancestors https://www.example.org https://shop.example.org;" in f"{policy};"
    assert "default-src 'none'" in policy
    assert "X-Frame-Options" not in response
    assert not response.cookies
    home = client.get("/")
    assert ("frame-ancestors 'none'" in home["Content-Security-Policy"], home["X-Frame-Options"]) == (True, "DENY")
    assert client.get("/widget.js")["Location"].startswith("/static/chat/widget")


def test_only_what_was_asked_without_an_account_is_shown(client, settings):
    settings.WIDGET_SITES = ["https://www.example.org"]
    for owner, visitor, status in ((None, "", 200), (None, "a browser", 404), (make_reader("a"), "", 404)):
        conversation = Conversation.objects.create(title="Q", owner=owner, visitor=visitor)
        answer = Answer.objects.create(conversation=conversation, question="Q?", text="Yes.", status="completed")
        assert client.get(f"/widget/answers/{answer.pk}/").status_code == status
