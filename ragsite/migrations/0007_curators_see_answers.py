"""Curators see answers and the dashboard: given once to a group that is there. On a new site it gets all from the start."""

from typing import Any

from django.db import migrations

_VIEWED = [f"view_{model}" for model in ("answer", "citation", "conversation", "feedback", "judgement", "score")]


def give(apps: Any, _editor: Any) -> None:
    viewed = apps.get_model("auth", "Permission").objects.filter(codename__in=_VIEWED)
    curating = {"name": "Curators", "permissions__codename": "change_document"}
    for group in apps.get_model("auth", "Group").objects.filter(**curating):
        group.permissions.add(*viewed)


class Migration(migrations.Migration):
    dependencies = [("ragsite", "0006_shared_cache")]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
