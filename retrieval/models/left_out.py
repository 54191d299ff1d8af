"""What a file holds beside the text that was read of it, and what was recognised, told in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def tell(left_out: Iterable[tuple[str, list[str], int]]) -> str:
    """Sentences about rows of ``Document.left_out``: kind, the first names, and how many there are in all."""
    # What was recognised has its lowest confidence in the place of names.
    return " ".join(
        _sentence(kind, names[0] if kind == "recognised" else _list(names, count), count)
        for kind, names, count in left_out
    )


def _list(names: list[str], count: int) -> str:
    more = count - len(names)
    return ", ".join(names) + (ngettext(" and %d more", " and %d more", more) % more if names and more > 0 else "")


def _sentence(kind: str, names: str, count: int) -> str:
    told = {"names": names, "count": count}
    match kind:
        case "sheets":
            return _("Hidden sheets were not read: %(names)s.") % told
        case "slides":
            return _("Hidden slides were not read: %(names)s.") % told
        case "formulas":
            return (
                ngettext(
                    "%(count)d formula has no value in the file: open it in its program, save it and upload it.",
                    "%(count)d formulas have no value in the file: open it in its program, save it and upload it.",
                    count,
                )
                % told
            )
        case "pictures":
            return (
                ngettext(
                    "%(count)d picture within the words was not read.",
                    "%(count)d pictures within the words were not read.",
                    count,
                )
                % told
            )
        case "recognised":
            return (
                ngettext(
                    "The text of %(count)d picture was recognised (OCR), with a confidence of %(names)s %%.",
                    "The text of %(count)d pictures was recognised (OCR), with a confidence of %(names)s %% or more.",
                    count,
                )
                % told
            )
        case "more pictures":
            return (
                ngettext("%(count)d more picture was not read.", "%(count)d more pictures were not read.", count) % told
            )
        case "pictures without engine" | "pictures turned off":
            return _tell_unread(kind, count)
        case "unreadable":
            return _("Left out, because damaged or of a format that is not read: %(names)s.") % told
        case "locked":
            return _("Left out, because password-protected: %(names)s.") % told
        case "large":
            return _("Left out, because larger than a document may be: %(names)s.") % told
        case "linked":
            return _("Left out, because only linked to: %(names)s.") % told
        # Of a file that was read before kinds were kept.
        case _:
            return names


def _tell_unread(kind: str, count: int) -> str:
    said = ngettext("%(count)d picture was not read.", "%(count)d pictures were not read.", count) % {"count": count}
    if kind == "pictures turned off":
        return f"{said} {_('Text recognition (OCR) is turned off here.')}"
    return f"{said} {_('Text recognition (OCR) is not installed here.')}"
