"""Every address of the admin: closed to visitors, to users, and to staff without a permission."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

pytestmark = pytest.mark.django_db

# Open to whoever signs in or has signed in as staff: the sign-in itself, one's own password, and pages without content.
OPEN = {"index", "login", "logout", "password_change", "password_change_done", "autocomplete", "jsi18n", "view_on_site"}
OPEN_ROUTES = ("app_list",)


def addresses() -> Iterator[tuple[str, str]]:
    """Name and address of each, with 1 for every part that varies."""

    def walk(patterns: list[Any], route: str) -> Iterator[tuple[str, str]]:
        for pattern in patterns:
            here = route + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, here)
            elif isinstance(pattern, URLPattern) and pattern.name:
                yield pattern.name, "/" + re.sub(r"<[^>]+>", "1", here)

    for pattern in get_resolver().url_patterns:
        if isinstance(pattern, URLResolver) and str(pattern.pattern) == "admin/":
            yield from walk(pattern.url_patterns, "admin/")


def closed() -> list[tuple[str, str]]:
    return [(name, address) for name, address in addresses() if name not in OPEN | set(OPEN_ROUTES)]


def test_there_are_as_many_as_there_should_be() -> None:
    names = {name for name, _address in closed()}
    assert {"retrieval_draft_publish", "evaluation_evaluationset_import", "evaluation_dashboard_gaps"} <= names
    assert len(names) > 100


@pytest.mark.parametrize("who", ["visitor", "user", "staff"])
def test_nobody_without_a_permission_gets_anything(who: str) -> None:
    client = Client(raise_request_exception=False)
    if who != "visitor":
        client.force_login(User.objects.create_user(who, is_staff=who == "staff"))
    leaks = []
    for name, address in closed():
        if "(?P" in address:
            continue
        for method in ("get", "post"):
            response = getattr(client, method)(address)
            allowed = (403, 404, 405) if who == "staff" else (302,)
            to_sign_in = response.status_code == 302 and "/admin/login/" in response["Location"]
            # Django sends staff who name a row that is not there back to the front page, with a sentence.
            to_front = response.status_code == 302 and response["Location"] == "/admin/"
            if not (to_sign_in or (who == "staff" and (to_front or response.status_code in allowed))):
                leaks.append((name, method, response.status_code))
    assert leaks == []
