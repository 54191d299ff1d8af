"""Translate a source's names of users and groups to names on this site, by a table in its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.models.narrowing import MAIL, build_reader_name_from_address
from retrieval.models.source import EVERYBODY
from retrieval.sources.options import LinesField
from retrieval.sources.protocol import ItemReaders

MOST_NAMES = 1000
# If an item's readers are only this name, all users who may read the collection may read the item.
ALL = "*"


class NamesField(LinesField):
    """A form field for lines "name in the source = name on this site".

    The name on this site is a group, a mail address or ALL.
    """

    def clean(self, value: Any) -> Any:
        lines = super().clean(value)
        if len(lines) > MOST_NAMES:
            raise ValidationError(_t("There are more than %d lines.") % MOST_NAMES)
        names: set[str] = set()
        for line in lines:
            there, here = _split_name_pair(line)
            if not there or not here:
                raise ValidationError(
                    _t("“%s” must be a name there, “=”, and a group, a mail address or “*” here.") % line[:100]
                )
            if there in names:
                raise ValidationError(_t("“%s” has two lines: a name there has one name here.") % there[:100])
            names.add(there)
            _validate_name_on_site(here)
        return lines


def _validate_name_on_site(here: str) -> None:
    if here.startswith(MAIL):
        raise ValidationError(_t("Write the address of “%s” without “mail:”.") % here[:100])
    if "@" in here:
        try:
            validate_email(here)
        except ValidationError as error:
            raise ValidationError(_t("“%s” is not a mail address.") % here[:100]) from error


def _split_name_pair(line: str) -> tuple[str, str]:
    there, _sign, here = line.rpartition("=")
    return there.strip(), here.strip()


class ReadersBySourceForm(forms.Form):
    takes_readers = forms.BooleanField(
        label=_("Take over who may read"),
        required=False,
        help_text=_(
            "Each document is then open only to those who may read it there, as far as the collection admits them. "
            "Names that are unknown here admit nobody."
        ),
    )
    reader_names = NamesField(
        label=_("Names"),
        required=False,
        help_text=_(
            "For groups and accounts with other names there: a line such as name there = name here for each. "
            "The name here is a group, a mail address, or * for all who may read the collection."
        ),
    )


class ReaderNameTable:
    """Translates names of readers in a source to names on this site. ``unmatched`` are names without a translation."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        lines: Iterable[str] = options.get("reader_names") or []
        self._here = dict(map(_split_name_pair, lines))
        self.unmatched: set[str] = set()

    def translate(self, readers: ItemReaders) -> list[str] | str:
        """Return EVERYBODY or the names on this site for ``readers``: groups, or `mail:` and a mail address."""
        if readers.is_everybody or any(self._here.get(group) == ALL for group in readers.groups):
            return EVERYBODY
        named: set[str] = set()
        for group in readers.groups:
            here = self._here.get(group)
            if here is not None:
                named.add(build_reader_name_from_address(here) if "@" in here else here)
            elif group.startswith(MAIL):
                # The prefix of this group's name would mean a mail address here.
                self.unmatched.add(group)
            else:
                named.add(group)
        for user in readers.users:
            # A user with the same name as a group in the source must not get the group's rights.
            here = self._here.get(user, user)
            if "@" in here:
                named.add(build_reader_name_from_address(here))
            else:
                self.unmatched.add(user)
        return sorted(named)
