"""What an OpenID Connect provider says of a person, read from its claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GROUP_NAME_MAX_CHARACTERS = 150


@dataclass(frozen=True, slots=True)
class Claims:
    """``email`` is empty unless the provider answers for it. ``groups_left_out`` says that the provider knows groups
    that it did not send, as Entra does when there are many.
    """

    email: str
    groups: frozenset[str]
    groups_left_out: bool
    is_one_subject: bool

    @property
    def domain(self) -> str:
        return self.email.rpartition("@")[2]


def read_claims(data: Mapping[str, Any], *, groups_claim: str, trust_email: bool) -> Claims:
    """Read the claims of the userinfo endpoint (``data["userinfo"]``) and the ID token (``data["id_token"]``)."""
    userinfo, id_token = data.get("userinfo") or {}, data.get("id_token") or {}
    said = userinfo or id_token
    email = said.get("email")
    # Some providers send the strings "true" and "false", and the second is true to Python.
    is_verified = trust_email or said.get("email_verified") in (True, "true")
    groups = _claim(userinfo, groups_claim)
    if groups is None:
        groups = _claim(id_token, groups_claim)
    left_out = any(groups_claim in (part.get("_claim_names") or {}) for part in (userinfo, id_token))
    return Claims(
        email=email.strip().lower() if isinstance(email, str) and is_verified else "",
        groups=_names(groups),
        groups_left_out=left_out,
        is_one_subject=not userinfo or not id_token or userinfo.get("sub") == id_token.get("sub"),
    )


def saml_claims(attributes: Mapping[str, list[Any]], email_attribute: str) -> dict[str, Any]:
    """SAML attributes, each of which is a list, in the form of claims. They never say that an address is verified."""
    email = (attributes.get(email_attribute) or [None])[0]
    return {"userinfo": {**attributes, "email": email, "email_verified": False}}


def wanted_groups(claimed: frozenset[str], mapping: Mapping[str, str]) -> frozenset[str]:
    """The names of the site's groups. With a mapping, the groups that it names and no others."""
    names = {mapping[name] for name in claimed if name in mapping} if mapping else claimed
    return frozenset(name for name in names if len(name) <= GROUP_NAME_MAX_CHARACTERS)


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or inside of others: ``realm_access.roles``."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _names(value: Any) -> frozenset[str]:
    """The names in a list, or the one name. Keycloak writes the path of a group, which begins with a slash."""
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(
        name
        for each in names
        if isinstance(each, str) and "\0" not in each and (name := each.strip().removeprefix("/"))
    )
