from __future__ import annotations

from typing import Any

from allauth.account.forms import (
    ChangePasswordForm,
    LoginForm,
    ResetPasswordForm,
    ResetPasswordKeyForm,
    SignupForm,
)
from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.forms import BooleanField, Form
from django.utils.translation import gettext as _

from ragsite.accounts import invitations, sign_in_limits
from ragsite.accounts.sign_in import list_connected_programs, may_use_password
from ragsite.models import ApiKey
from ragsite.models.account import find_users_by_email


class SignInForm(LoginForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("Username or e-mail address")
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)

    def add_prefix(self, field_name: str) -> str:
        # The field keeps the name `username` in the request, because the admin and programs send it.
        name: str = super().add_prefix("username" if field_name == "login" else field_name)
        return name


class SignUpForm(SignupForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.invitation = invitations.find_pending_invitation(context.request)
        if self.invitation is not None:
            self.fields["email"].initial = self.invitation.email
            # Django ignores the sent value of a disabled field.
            self.fields["email"].disabled = True

    def clean_email(self) -> str:
        email: str = super().clean_email()
        if self.invitation is None and email.rpartition("@")[2].lower() not in settings.SIGN_UP_DOMAINS:
            domains = ", ".join(settings.SIGN_UP_DOMAINS)
            raise ValidationError(_("Accounts here are for addresses of: %(domains)s.") % {"domains": domains})
        return email


class PasswordResetForm(ResetPasswordForm):
    def clean_email(self) -> str:
        email: str = super().clean_email()
        # Accounts that must sign in with an identity provider get no mail, because a password would bypass the
        # provider.
        self.users = [
            user
            for user in find_users_by_email(email)
            if user.is_active and user.has_usable_password() and may_use_password(user)
        ]
        return email


class _RevokeAccessForm(Form):
    user: User | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.user is None:
            return
        if ApiKey.objects.usable().filter(user=self.user).exists():
            label, why = _("Revoke all my API keys"), _("Someone who knew your old password may have created one.")
            self.fields["revoke_keys"] = BooleanField(label=label, initial=True, required=False, help_text=why)
        if list_connected_programs(self.user):
            label = _("Revoke all programs that I let in")
            why = _("Someone who knew your old password may have connected one.")
            self.fields["revoke_programs"] = BooleanField(label=label, initial=True, required=False, help_text=why)

    def save(self) -> None:
        with transaction.atomic():
            super().save()  # type: ignore[misc]
            if self.user is None:
                return
            if self.cleaned_data.get("revoke_keys"):
                for key in ApiKey.objects.usable().filter(user=self.user):
                    key.revoke()
            if self.cleaned_data.get("revoke_programs"):
                from ragsite.accounts.mcp_sign_in import revoke_tokens

                for program in list_connected_programs(self.user):
                    revoke_tokens(self.user, program.pk)


class PasswordChangeForm(_RevokeAccessForm, ChangePasswordForm):
    pass


class NewPasswordForm(_RevokeAccessForm, ResetPasswordKeyForm):
    pass


class _LimitedCodeAttemptsMixin:
    """A form for the code of a second factor. After too many wrong codes it accepts none."""

    user: User

    def clean_code(self) -> str:
        caller = sign_in_limits.build_sign_in_caller(context.request, f"second factor of {self.user.pk}")
        sign_in_limits.raise_if_limited(sign_in_limits.find_second_factor_wait_seconds(caller), "codes")
        try:
            code: str = super().clean_code()  # type: ignore[misc]
        except ValidationError:
            sign_in_limits.record_sign_in_failure(caller)
            raise
        sign_in_limits.delete_failure_count(caller)
        return code


class SecondFactorCodeForm(_LimitedCodeAttemptsMixin, AuthenticateForm):
    pass


class ReauthenticationCodeForm(_LimitedCodeAttemptsMixin, ReauthenticateForm):
    pass
