"""Which arm of an experiment a visitor is in. PURE.

Computed, not stored: the same visitor gets the same arm in every process, and an experiment with another salt shuffles
them anew.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum


class Arm(StrEnum):
    CONTROL = "control"
    TREATMENT = "treatment"


def assign(salt: str, subject: str, *, traffic_share: float, treatment_share: float) -> Arm | None:
    """The visitor's arm; None for the share that takes no part, and for a subject without identity (an empty one).

    Whether and where are drawn apart, so that a larger share of traffic moves nobody from one arm to the other.
    Raises: ValueError for a share outside [0, 1].
    """
    if not (0 <= traffic_share <= 1 and 0 <= treatment_share <= 1):
        raise ValueError(f"Shares lie between 0 and 1, unlike {traffic_share} and {treatment_share}.")
    if not subject or _uniform(salt, "traffic", subject) >= traffic_share:
        return None
    return Arm.TREATMENT if _uniform(salt, "arm", subject) < treatment_share else Arm.CONTROL


def pseudonym(salt: str, subject: str) -> str:
    """The visitor's name in the rows of one experiment: 32 hexadecimal digits, other ones in every experiment."""
    return _digest(salt, "pseudonym", subject).hex()


def _uniform(salt: str, purpose: str, subject: str) -> float:
    """In [0, 1), equally likely everywhere; 53 bits, which a float holds exactly."""
    return (int.from_bytes(_digest(salt, purpose, subject)[:8], "big") >> 11) / 2**53


def _digest(salt: str, purpose: str, subject: str) -> bytes:
    return hashlib.blake2b("\0".join((purpose, salt, subject)).encode(), digest_size=16).digest()
