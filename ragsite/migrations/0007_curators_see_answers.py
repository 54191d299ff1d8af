"""Curators see the answers that rest on their collections, and the dashboard: a group that is there already, too.

Once: what is taken from the group afterwards stays taken. On a new site there is no group yet, and it gets it all.
"""

from typing import Any

from django.db import migrations

_VIEWED = {"chat": ("answer", "citation", "conversation", "feedback"), "evaluation": ("judgement", "score")}


def give(apps: Any, _editor: Any) -> None:
    permissions = apps.get_model("auth", "Permission").objects
    curating = {"name": "Curators", "permissions__codename": "change_document"}
    for group in apps.get_model("auth", "Group").objects.filter(**curating):
        for app, models in _VIEWED.items():
            viewed = [f"view_{model}" for model in models]
            group.permissions.add(*permissions.filter(content_type__app_label=app, codename__in=viewed))


class Migration(migrations.Migration):
    dependencies = [("ragsite", "0006_shared_cache")]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
