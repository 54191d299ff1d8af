from __future__ import annotations

from django.conf import settings
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView


class MayAsk(BasePermission):
    """Everybody, or everybody who has signed in: as CHAT_REQUIRES_LOGIN says."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return not settings.CHAT_REQUIRES_LOGIN or bool(request.user and request.user.is_authenticated)


class MayAskStaffMayWrite(MayAsk):
    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.method in ("GET", "HEAD", "OPTIONS"):
            return super().has_permission(request, view)
        return bool(request.user and request.user.is_staff)
