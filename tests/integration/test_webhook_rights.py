"""Webhooks and their deliveries contain questions about any collection: superusers alone see and change them."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType

from ragsite.accounts.roles import create_roles
from retrieval.models import Webhook, WebhookDelivery
from tests.support.asking import client_of
from tests.support.people import make_staff, make_superuser

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _roles():
    create_roles()


QUESTION = "zebrafish merger"
PAYLOAD = {"question": QUESTION, "comment": QUESTION, "document": QUESTION}
HOOK, SENT = "/admin/retrieval/webhook", "/admin/retrieval/webhookdelivery"


@pytest.fixture
def delivery():
    webhook = Webhook(address="https://hooks.example/events", events=list(Webhook.Event))
    webhook.set_secret("s")
    webhook.save()
    return WebhookDelivery.objects.create(webhook=webhook, event="answer.disliked", payload=PAYLOAD, status="done")


def staff(role):
    user = make_staff(role)
    if role == "permissions":
        user.user_permissions.set(Permission.objects.all())
    else:
        user.groups.add(Group.objects.get(name=role))
    return user


def doors(delivery):
    """Return method, address and form of each way to read or send deliveries."""
    hook, sent = f"{HOOK}/{delivery.webhook_id}", f"{SENT}/{delivery.pk}"
    form = {"address": "https://mine.example/", "events": ["answer.disliked"], "is_active": "on", "new_secret": ""}
    for address in (f"{SENT}/", f"{sent}/change/", f"{sent}/history/", f"{sent}/delete/", f"{SENT}/add/"):
        yield "get", address, {}
    for address in (f"{HOOK}/", f"{hook}/change/", f"{hook}/history/", f"{hook}/delete/", f"{HOOK}/add/"):
        yield "get", address, {}
    yield "get", f"{SENT}/?webhook__id__exact={delivery.webhook_id}&q={QUESTION}", {}
    yield "get", f"/admin/r/{ContentType.objects.get_for_model(WebhookDelivery).pk}/{delivery.pk}/", {}
    yield "post", f"{HOOK}/add/", form
    yield "post", f"{hook}/change/", form
    yield "post", f"{hook}/delete/", {"post": "yes"}
    yield "post", f"{HOOK}/", {"action": "send_test", "_selected_action": [delivery.webhook_id]}
    yield "post", f"{SENT}/", {"action": "send_again", "_selected_action": [delivery.pk]}
    yield "post", f"{SENT}/", {"action": "delete_selected", "_selected_action": [delivery.pk], "post": "yes"}


@pytest.mark.parametrize("role", ["Auditors", "Administrators", "Curators", "Evaluators", "permissions"])
def test_staff_who_are_no_superusers_neither_read_nor_send(delivery, role):
    page = client_of(staff(role))
    for method, address, form in doors(delivery):
        answer = getattr(page, method)(address, form, follow=True)
        text = answer.content.decode()
        assert QUESTION not in text.replace(f"q={QUESTION}", ""), address
        assert answer.status_code in (403, 404), address
    assert "webhook" not in page.get("/admin/", follow=True).content.decode()
    assert (Webhook.objects.get().address, WebhookDelivery.objects.get().status) == (
        "https://hooks.example/events",
        "done",
    )
    assert not LogEntry.objects.exists()


def test_a_superuser_reads_and_sends(delivery):
    page = client_of(make_superuser("boss"))
    assert QUESTION in page.get(f"{SENT}/{delivery.pk}/change/").content.decode()
    page.post(f"{SENT}/", {"action": "send_again", "_selected_action": [delivery.pk]})
    delivery.refresh_from_db()
    assert delivery.status == "waiting"


@pytest.mark.parametrize("role", ["Auditors", "Administrators"])
def test_the_groups_that_see_all_have_no_permission_for_them(role):
    named = Group.objects.get(name=role).permissions.filter(content_type__model__startswith="webhook")
    assert not named.exists()
