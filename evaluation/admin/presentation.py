"""How judgements and scores look in the admin. Every value is escaped."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _t

from evaluation.figures import fixed
from evaluation.models import Judgement, Score
from retrieval.admin.base import badge

# The admin's colours are named for what happens to documents.
_COLOURS = {
    Judgement.Status.QUEUED: "pending",
    Judgement.Status.RUNNING: "processing",
    Judgement.Status.DONE: "ready",
    Judgement.Status.FAILED: "failed",
    Judgement.Status.SKIPPED: "stopped",
}


def state_badge(judgement: Judgement) -> SafeString:
    """The judgement's status; an attempt that failed shows before the next one."""
    colour = _COLOURS[Judgement.Status(judgement.status)]
    if judgement.status == Judgement.Status.QUEUED and judgement.error:
        return badge("failed", _t("failed, will be tried again"))
    return badge(colour, judgement.get_status_display())


def score_text(score: Score) -> SafeString:
    """The score with two decimals, marked when it is low; the word for an error when there is none."""
    if score.score is None:
        return badge("failed", _t("error"))
    text = fixed(score.score, 2)
    return badge("failed", _t("%s, low") % text) if score.is_low else format_html("{}", text)


def score_table(judgement: Judgement) -> SafeString:
    """The judgement's scores with their reasons; a dash when there are none yet."""
    rows = [(one.get_metric_display(), score_text(one), one.error or one.reason) for one in judgement.scores.all()]
    if not rows:
        return mark_safe("-")
    return format_html(
        "<table><thead><tr><th>{}</th><th>{}</th><th>{}</th></tr></thead><tbody>{}</tbody></table>",
        _t("metric"),
        _t("score"),
        _t("reason"),
        format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td></tr>", rows),
    )


def details_table(score: Score) -> SafeString:
    """What the score was made from, an object a row; a dash when nothing is kept."""
    rows = [row for row in score.details if isinstance(row, dict)]
    if not rows:
        return mark_safe("-")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return format_html(
        "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>",
        format_html_join("", "<th>{}</th>", ((name.replace("_", " "),) for name in names)),
        format_html_join(
            "",
            "<tr>{}</tr>",
            ((format_html_join("", "<td>{}</td>", ((_cell(row.get(name)),) for name in names)),) for row in rows),
        ),
    )


def _cell(value: object) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, float):
        return fixed(value, 2)
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return str(value)
