from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from core.key_limits import KeyScope, get_limits
from core.users import is_staff_with


class MayAsk(BasePermission):
    def has_permission(self, request: Request, view: APIView) -> bool:
        return not settings.CHAT_REQUIRES_LOGIN or bool(request.user and request.user.is_authenticated)


class StaffWithPermission(BasePermission):
    message = "Your account may not do this: ask an administrator for the permission."
    actions: ClassVar[dict[str, str]] = {
        **dict.fromkeys(SAFE_METHODS, "view"),
        "POST": "add",
        "PUT": "change",
        "PATCH": "change",
        "DELETE": "delete",
    }

    def has_permission(self, request: Request, view: Any) -> bool:
        action, model = self.actions.get(request.method or ""), view.queryset.model._meta
        # If the method has no action, the view itself responds with 405.
        return action is None or is_staff_with(request.user, f"{model.app_label}.{action}_{model.model_name}")


class StaffOrAskersReadOnly(StaffWithPermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        if request.method in SAFE_METHODS:
            return MayAsk().has_permission(request, view)
        return super().has_permission(request, view)


def check_scopes(request: Request, scopes: tuple[KeyScope, ...], *, takes_source_keys: bool = False) -> None:
    """Raise PermissionDenied unless the request's API key has one of the scopes, or `admin`.

    A request without a key needs no scope. A key for one source is refused without ``takes_source_keys``.
    """
    limits = get_limits(request.user)
    if limits is not None and limits.source is not None and not takes_source_keys:
        raise PermissionDenied("This key may do nothing but send documents to its source.")
    if limits is None or KeyScope.ADMIN in limits.scopes:
        return
    if limits.scopes.isdisjoint(scopes):
        needed = " or ".join(str(scope) for scope in (scopes or (KeyScope.ADMIN,)))
        raise PermissionDenied(f"This key may not do this: it takes the scope {needed}.")
