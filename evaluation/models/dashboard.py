from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from chat.models import Answer


class Dashboard(Answer):
    """No rows of its own: the answers as a whole, so that their figures have a page among the others of the admin."""

    class Meta:
        proxy = True
        # Who may see answers may see their figures.
        default_permissions = ()
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")
