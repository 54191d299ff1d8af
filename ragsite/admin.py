from ragsite.accounts import admin as accounts  # noqa: F401  # registers its models
from ragsite.accounts import user_admin  # noqa: F401
from ragsite.audit.admin import AuditEntryAdmin
from ragsite.keys.admin import ApiKeyAdmin

__all__ = ["ApiKeyAdmin", "AuditEntryAdmin"]
