from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _t

from core.admin_base import PageAdmin

if TYPE_CHECKING:
    from retrieval.gates import PublicationRefused


class GatedAdmin(PageAdmin):
    def render_refusal(self, request: HttpRequest, refusal: PublicationRefused, **context: Any) -> TemplateResponse:
        context |= {
            "objections": refusal.objections,
            "may_override": request.user.has_perm("retrieval.override_gate"),
            "has_no_reason": "override" in request.POST,
        }
        return self.render_page(request, "refused", _t("Not published: %s") % context["subject"], context, status=409)


def read_override_reason(request: HttpRequest) -> str:
    """Return the user's reason to publish against objections; empty if the user may not override them."""
    return request.POST.get("override", "") if request.user.has_perm("retrieval.override_gate") else ""
