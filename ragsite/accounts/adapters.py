"""Adapt allauth to this site: who may sign up, and who may sign in with an identity provider."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, NoReturn

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.account.stages import EmailVerificationStage
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _

from core.api.callers import find_address
from core.encryption import decrypt, encrypt
from ragsite.accounts import invitations
from ragsite.accounts.claims import (
    SignInClaims,
    apply_claims,
    convert_saml_attributes,
    is_last_local_administrator,
    read_claims,
)
from ragsite.accounts.sign_in import may_use_password
from ragsite.models.account import find_users_by_email

logger = logging.getLogger(__name__)

_PURPOSE = "accounts.mfa"
_CONFIRM_EVERYBODY = "allauth.account.stages.EmailVerificationStage"
_CONFIRM_SIGN_UPS = "ragsite.accounts.adapters.ConfirmSignUpStage"


class AccountAdapter(DefaultAccountAdapter):
    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": _("The name or the password is wrong."),
        "email_password_mismatch": _("The name or the password is wrong."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        if not settings.LOCAL_PASSWORDS:
            return False
        return settings.SIGN_UP == "domain" or invitations.find_pending_invitation(request) is not None

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> Any:
        invitation = getattr(form, "invitation", None)
        if invitation is None:
            return super().save_user(request, user, form, commit)
        with transaction.atomic():
            user = super().save_user(request, user, form, commit)
            if not invitations.accept_invitation(invitation, user):
                raise ImmediateHttpResponse(redirect("account_signup"))
        # The person opened the link of a mail to this address, so the address is confirmed.
        self.stash_verified_email(request, invitation.email)
        return user

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        request.stages_follow = True  # type: ignore[attr-defined]

    def pre_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponse | None:
        response: HttpResponse | None = super().pre_login(request, user, **options)
        sociallogin = (options["signal_kwargs"] or {}).get("sociallogin")
        if response is not None:
            return response
        if sociallogin is None:
            if not (user.has_usable_password() and may_use_password(user)):
                # The account must use its identity provider: a passkey would still work after the provider has closed
                # the account.
                _refuse_sign_in(request, "an account of the provider signs in there")
        else:
            # Rights that the provider has taken away are removed before the session begins.
            apply_claims(user, read_login_claims(sociallogin))
            user.refresh_from_db()
        return response

    def post_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponse:
        if (options["signal_kwargs"] or {}).get("sociallogin") is not None:
            # A timedelta sets a fixed end; a number of seconds would begin again with each save.
            request.session.set_expiry(timedelta(hours=settings.OIDC_SESSION_HOURS))
        response: HttpResponse = super().post_login(request, user, **options)
        return response

    def get_login_stages(self) -> list[str]:
        return [_CONFIRM_SIGN_UPS if stage == _CONFIRM_EVERYBODY else stage for stage in super().get_login_stages()]

    def is_safe_url(self, url: str | None) -> bool:
        # This replaces allauth's own method, which raises an error for addresses that it cannot parse.
        request = context.request
        return url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        try:
            super().send_mail(template_prefix, email, context)
        except OSError:
            logger.exception("A mail could not be sent.")
            raise ImmediateHttpResponse(render(self.request, "account/mail_failed.html", status=503)) from None

    def get_client_ip(self, request: HttpRequest) -> str:
        return find_address(request)


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: dict[str, Any]) -> Any:
        email = read_login_claims(sociallogin).email
        sociallogin.email_addresses = [EmailAddress(email=email, verified=True, primary=True)] if email else []
        # A username that looks like an e-mail address could be the address of another account.
        username = (data.get("username") or "").partition("@")[0]
        return super().populate_user(request, sociallogin, {**data, "email": email, "username": username})

    def authenticate_by_email(self, sociallogin: Any) -> tuple[Any, str] | None:
        """Return the account with the provider's e-mail address, or None. allauth connects the account to the login."""
        email = read_login_claims(sociallogin).email
        if not settings.OIDC_JOIN_BY_EMAIL or not email:
            return None
        users = [user for user in find_users_by_email(email) if user.is_active]
        if len(users) != 1:
            return None
        user = users[0]
        address, _created = EmailAddress.objects.get_or_create(
            user=user, email=email, defaults={"verified": True, "primary": True}
        )
        if not address.verified and is_last_local_administrator(user):
            # allauth would remove the password of this account, because its address is not confirmed.
            logger.warning("%s is not joined by e-mail: it is the last administrator with a password.", user)
            return None
        return user, email

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        claims = read_login_claims(sociallogin)
        if sociallogin.state.get("process") != "login":
            _refuse_sign_in(request, "only signing in is offered")
        if not claims.is_one_subject:
            _refuse_sign_in(request, "the ID token and the userinfo name different people")
        if settings.OIDC_DOMAINS and claims.email.rpartition("@")[2] not in settings.OIDC_DOMAINS:
            _refuse_sign_in(request, "no verified e-mail address of an allowed domain")
        if sociallogin.is_existing:
            return
        if claims.email and find_users_by_email(claims.email):
            _refuse_sign_in(request, "another account has the e-mail address")

    def on_authentication_error(self, request: HttpRequest, provider: Any, **details: Any) -> None:
        logger.warning("Signing in with the provider failed: %s %s", details.get("error"), details.get("exception"))


class ConfirmSignUpStage(EmailVerificationStage):
    """A stage of each sign-in: an account with an unconfirmed e-mail address gets a mail to confirm it."""

    def handle(self) -> tuple[Any, bool]:
        user = self.login.user
        if user is not None and not EmailAddress.objects.filter(user_id=user.pk, verified=False).exists():
            return None, True
        response: tuple[Any, bool] = super().handle()
        return response


class MFAAdapter(DefaultMFAAdapter):
    def encrypt(self, text: str) -> str:
        return encrypt(_PURPOSE, text)

    def decrypt(self, encrypted_text: str) -> str:
        return decrypt(_PURPOSE, encrypted_text)


def read_login_claims(sociallogin: Any) -> SignInClaims:
    data = sociallogin.account.extra_data
    if sociallogin.account.provider == "saml":
        data = convert_saml_attributes(data, settings.SAML_EMAIL_ATTRIBUTE)
    return read_claims(data, groups_claim=settings.OIDC_GROUPS_CLAIM, trust_email=settings.OIDC_TRUST_EMAIL)


def _refuse_sign_in(request: HttpRequest, reason: str) -> NoReturn:
    logger.warning("Refused to sign in by single sign-on: %s.", reason)
    raise ImmediateHttpResponse(render(request, "account/refused.html", status=403))
