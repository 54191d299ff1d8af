"""Curators approve answers and add collections: given once to a group that is there. On a new site it gets all from the
start."""

from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations

_GIVEN = [*(f"{action}_approvedanswer" for action in ("view", "add", "change", "delete")), "add_collection"]


def give(apps: Any, _editor: Any) -> None:
    # Those of a new model are made after all migrations, which is too late here.
    chat = apps.get_app_config("chat")
    chat.models_module = True
    create_permissions(chat, apps=apps, verbosity=0)
    chat.models_module = None
    given = apps.get_model("auth", "Permission").objects.filter(codename__in=_GIVEN)
    curating = {"name": "Curators", "permissions__codename": "change_document"}
    for group in apps.get_model("auth", "Group").objects.filter(**curating):
        group.permissions.add(*given)


class Migration(migrations.Migration):
    dependencies = [("ragsite", "0007_curators_see_answers"), ("chat", "0014_approved_answers")]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
