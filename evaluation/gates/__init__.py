"""What has to be measured before a search profile or a draft of documents is published, and after documents changed.

A gate never says that something is good: it says that it is not significantly worse on the questions of its set. With
few questions the interval is wide, and little is ever significant; the pages show it.
"""

from evaluation.gates.corpus import examine, open_alerts, watch
from evaluation.gates.objections import guards, objections_to, objections_to_draft, reason_of
from evaluation.gates.verdicts import GateCheck, GateSubject, Verdict, check, kind_of, request_runs

__all__ = [
    "GateCheck",
    "GateSubject",
    "Verdict",
    "check",
    "examine",
    "guards",
    "kind_of",
    "objections_to",
    "objections_to_draft",
    "open_alerts",
    "reason_of",
    "request_runs",
    "watch",
]
