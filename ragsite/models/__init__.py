from ragsite.models.account import ClaimedRights, Invitation
from ragsite.models.api_key import ApiKey
from ragsite.models.audit import AuditEntry, AuditPerson
from ragsite.models.sign_in import SignInCount

__all__ = ["ApiKey", "AuditEntry", "AuditPerson", "ClaimedRights", "Invitation", "SignInCount"]
