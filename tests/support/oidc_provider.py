"""An OpenID Connect provider on this machine, over real HTTP."""

import json
import os
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Provider:
    url: str

    def knows(self, subject, **claims):
        """From now on the provider says this of ``subject``; its address is a verified one unless it says otherwise."""
        said = {"email": f"{subject}@example.org", "email_verified": True, "preferred_username": subject, **claims}
        request = urllib.request.Request(
            f"{self.url}/users/{subject}", json.dumps(said).encode(), {"Content-Type": "application/json"}, method="PUT"
        )
        with urllib.request.urlopen(request, timeout=10):
            pass

    def authorize(self, url, subject):
        """Return the address to which the provider's page sends the browser."""
        # The test needs the provider's own answer, not the page at its address.
        opener = urllib.request.build_opener(_StayHere)
        request = urllib.request.Request(url, f"sub={subject}".encode(), method="POST")
        with opener.open(request, timeout=10) as response:
            return response.headers["Location"]


class _StayHere(urllib.request.HTTPRedirectHandler):
    def http_error_302(self, _request, file, *_details):
        return file


@contextmanager
def oidc_provider():
    from oidc_provider_mock import run_server_in_thread

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "AUTHLIB_INSECURE_TRANSPORT", "1")
        with run_server_in_thread() as server:
            yield Provider(f"http://localhost:{server.server_port}")
