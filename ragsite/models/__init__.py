from ragsite.models.account import ClaimedRights, Invitation, SignInCount
from ragsite.models.api_key import ApiKey
from ragsite.models.audit import AuditEntry, AuditPerson
from ragsite.models.identity import SiteIdentity
from ragsite.models.slack_question import SlackQuestion

__all__ = [
    "ApiKey",
    "AuditEntry",
    "AuditPerson",
    "ClaimedRights",
    "Invitation",
    "SignInCount",
    "SiteIdentity",
    "SlackQuestion",
]
