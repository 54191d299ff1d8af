from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ragsite.models import ApiKey
from ragsite.models.api_key import SCOPE_LABELS
from retrieval.models import Collection
from retrieval.rights.key_limits import Scope

MOST_USABLE_KEYS = 50


class KeyForm(forms.Form):
    """A new key of one's own."""

    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("What you will use it for, and where."))
    scopes = forms.MultipleChoiceField(
        label=_("What it may do"),
        choices=list(SCOPE_LABELS.items()),
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.SEARCH.value, Scope.ASK.value],
        help_text=_("Never more than your account may do at that moment."),
    )
    collections = forms.ModelMultipleChoiceField(
        label=_("Only these collections"),
        queryset=Collection.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("None chosen: all that you may read."),
    )
    days = forms.TypedChoiceField(
        label=_("Expires"),
        choices=[(30, _("in 30 days")), (90, _("in 90 days")), (365, _("in a year")), (0, _("never"))],
        coerce=int,
        initial=90,
    )

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        readable = Collection.objects.readable_by(user).in_service()
        self.fields["collections"].queryset = readable  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        if ApiKey.objects.usable().filter(user=self._user).count() >= MOST_USABLE_KEYS:
            raise forms.ValidationError(_("You have very many keys: revoke one that is not used any more."))
        return super().clean() or {}

    @property
    def expires_at(self) -> datetime | None:
        days: int = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None

    @property
    def chosen_collections(self) -> list[Collection] | None:
        return list(self.cleaned_data["collections"]) or None
