"""Where to report a weakness (RFC 9116)."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

# The file must name a day after which it is not to be trusted; the site says anew each time that it stands.
STANDS_FOR = timedelta(days=30)


@require_GET
def security_txt(request: HttpRequest) -> HttpResponse:
    """Raises: Http404 while SECURITY_CONTACT names nobody."""
    contact = settings.SECURITY_CONTACT
    if not contact:
        raise Http404
    address = contact if contact.startswith(("https://", "mailto:", "tel:")) else f"mailto:{contact}"
    expires = (timezone.now() + STANDS_FOR).strftime("%Y-%m-%dT%H:%M:%SZ")
    canonical = request.build_absolute_uri()
    lines = (f"Contact: {address}", f"Expires: {expires}", f"Canonical: {canonical}", "Preferred-Languages: en, nl")
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; charset=utf-8")
