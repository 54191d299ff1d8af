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


def assign(salt: str, subject: str, traffic_share: float) -> Arm | None:
    """The visitor's arm, each with the same probability; None for visitors outside the experiment.

    Outside are the share of visitors beyond ``traffic_share``, and a subject without identity (an empty one). A larger
    share moves nobody from one arm to the other. Raises: ValueError for a share outside [0, 1].
    """
    if not 0 <= traffic_share <= 1:
        raise ValueError(f"A share lies between 0 and 1, unlike {traffic_share}.")
    if not subject or _uniform(salt, "traffic", subject) >= traffic_share:
        return None
    return Arm.TREATMENT if _uniform(salt, "arm", subject) < 0.5 else Arm.CONTROL


def pseudonym(salt: str, subject: str) -> str:
    """The visitor's name in the rows of one experiment: 32 hexadecimal digits, other ones in every experiment."""
    return _digest(salt, "pseudonym", subject).hex()


def _uniform(salt: str, purpose: str, subject: str) -> float:
    """In [0, 1), equally likely everywhere; 53 bits, which a float holds exactly."""
    return (int.from_bytes(_digest(salt, purpose, subject)[:8], "big") >> 11) / 2**53


def _digest(salt: str, purpose: str, subject: str) -> bytes:
    return hashlib.blake2b("\0".join((purpose, salt, subject)).encode(), digest_size=16).digest()
