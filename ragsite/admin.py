from ragsite.accounts import account_admin as accounts  # noqa: F401  # registers its models
from ragsite.accounts import user_admin  # noqa: F401
from ragsite.accounts.key_admin import ApiKeyAdmin
from ragsite.operations.audit_admin import AuditEntryAdmin

__all__ = ["ApiKeyAdmin", "AuditEntryAdmin"]
