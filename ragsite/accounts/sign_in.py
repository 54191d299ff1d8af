from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.adapter import get_adapter
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils.translation import gettext as _
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from core.audit_signal import record_event
from core.user_types import AnyUser
from ragsite.accounts import sign_in_limits
from ragsite.accounts.sign_in_limits import raise_if_limited


class LimitedBackend(ModelBackend):
    """An authentication backend for a name and a password, with a limit of failures.

    A wrong password raises PermissionDenied, so that Django does not hash it again in the next backend.
    """

    def authenticate(
        self, request: Any, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> Any:
        """Return the user.

        Raises: PermissionDenied for a wrong name or password; SignInRefused if there were too many attempts.
        """
        username = username if username is not None else kwargs.get(get_user_model().USERNAME_FIELD)
        if username is None or password is None:
            return None
        if request is None:
            raise PermissionDenied
        username = _find_username(username)
        caller = sign_in_limits.build_sign_in_caller(request, username)
        allowance = _check_allowance(caller)
        raise_if_limited(
            sign_in_limits.admit_account_or_find_wait_seconds(caller, is_known=allowance.is_known), "account"
        )
        try:
            with sign_in_limits.wait_for_hashing_slot(is_known=allowance.is_known):
                # Other requests may have reached the limit while this one waited, so it is checked again.
                allowance = _check_allowance(caller)
                user = super().authenticate(request, username=username, password=password)
                if user is None or not may_use_password(user):
                    sign_in_limits.record_sign_in_failure(caller)
                    raise PermissionDenied
        except sign_in_limits.SignInBusy:
            if not allowance.is_known:
                sign_in_limits.record_attempt_while_busy(caller)
            raise
        # Only allauth's pages, which set `stages_follow`, can ask for the second factor later.
        if not getattr(request, "stages_follow", False) and not is_password_enough(user):
            sentence = _("This account needs more than a password: sign in at the site's own page.")
            raise AuthenticationFailed(sentence) if isinstance(request, Request) else ValidationError(sentence)
        if not allowance.is_clean:
            sign_in_limits.record_sign_in_success(caller)
        if isinstance(request, Request):
            # HTTP Basic starts no session, so Django sends no signal that could record the sign-in.
            record_event("sign_in.basic", user)
        return user

    async def aauthenticate(
        self, request: Any, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> Any:
        return await sync_to_async(self.authenticate)(request, username=username, password=password, **kwargs)


def _check_allowance(caller: sign_in_limits.Caller) -> sign_in_limits.Allowance:
    allowance = sign_in_limits.load_password_allowance(caller)
    raise_if_limited(allowance.wait_seconds, "failures")
    return allowance


def may_use_password(user: User) -> bool:
    """Return whether LOCAL_PASSWORDS lets the user sign in with a password; superusers always may."""
    return settings.LOCAL_PASSWORDS or bool(user.is_superuser)


def has_second_factor(user: AbstractBaseUser | AnonymousUser) -> bool:
    return bool(get_adapter().is_mfa_enabled(user))


def lacks_second_factor(user: AnyUser) -> bool:
    return bool(settings.STAFF_REQUIRES_MFA and user.is_staff and not has_second_factor(user))


def list_connected_programs(user: User) -> Any:
    """Return the programs that the user connected; none if MCP_SIGN_IN is off."""
    if not settings.MCP_SIGN_IN:
        return ()
    from ragsite.accounts.mcp_sign_in import list_authorized_programs

    return list_authorized_programs(user)


def is_password_enough(user: AbstractBaseUser) -> bool:
    return not has_second_factor(user) and not EmailAddress.objects.filter(user_id=user.pk, verified=False).exists()


def _find_username(name: str) -> str:
    users = get_user_model()._default_manager
    if "@" not in name or "\0" in name or users.filter(username=name).exists():
        return name
    found = users.filter(email__iexact=name).values_list("username", flat=True)[:2]
    return found[0] if len(found) == 1 else name
