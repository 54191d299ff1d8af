"""The kind of source whose documents other programs send over the API (see `retrieval.sources.pushes`)."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from retrieval.models.source import PUSH
from retrieval.sources.protocol import Connector


class PushOptions(forms.Form):
    """An empty form: sources of the kind Push have no settings."""


class PushConnector(Connector):
    name = PUSH
    label = _("Push")
    description = _("Your own programs send documents over the API, and delete them. It has no schedule.")
    form = PushOptions

    interval_minutes = 0
    is_read = False
    has_address = False
    lists_everything = False
