from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class AccountsAdminConfig(AdminConfig):
    default_site = "ragsite.accounts.admin_site.AccountsAdminSite"
