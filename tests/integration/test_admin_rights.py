"""Every address of the admin: closed to visitors, to users, and to staff without a permission."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.addresses import addresses, filled

pytestmark = pytest.mark.django_db

# Open to whoever signs in or has signed in as staff: the sign-in itself, one's own password, and pages without content.
OPEN = {
    "index", "login", "logout", "password_change", "password_change_done", "autocomplete", "jsi18n", "view_on_site",
    "None",
}  # fmt: skip


@pytest.mark.parametrize("who", ["visitor", "user", "staff"])
def test_nobody_without_a_permission_gets_anything(who):
    client = Client(raise_request_exception=False)
    if who != "visitor":
        client.force_login(User.objects.create_user(who, is_staff=who == "staff"))
    closed = {
        name: filled(route, lambda _kind, _name: 1)
        for name, route, _view in addresses()
        if name.startswith("admin:") and name.removeprefix("admin:") not in OPEN
    }
    leaks = []
    for name, address in closed.items():
        # For non-staff, the sign-in is checked before the method.
        for method in ("get", "post") if who == "staff" else ("get",):
            response = getattr(client, method)(address)
            allowed = (403, 404, 405) if who == "staff" else (302,)
            to_sign_in = response.status_code == 302 and "/admin/login/" in response["Location"]
            # Django sends staff who name a row that is not there back to the front page, with a sentence.
            to_front = response.status_code == 302 and response["Location"] == "/admin/"
            if not (to_sign_in or (who == "staff" and (to_front or response.status_code in allowed))):
                leaks.append((name, method, response.status_code))
    assert leaks == []
    assert len(closed) > 100
