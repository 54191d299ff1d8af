from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.account.stages import EmailVerificationStage


class ConfirmSignUpStage(EmailVerificationStage):
    """Asks those to confirm their address who typed it themselves; one that an administrator gave counts as it is."""

    def handle(self) -> tuple[Any, bool]:
        user = self.login.user
        if user is not None and not EmailAddress.objects.filter(user_id=user.pk, verified=False).exists():
            return None, True
        response: tuple[Any, bool] = super().handle()
        return response
