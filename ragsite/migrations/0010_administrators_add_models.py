"""Administrators and auditors of a site that is there already get the rights in language models, which came later. On a
new site they have them from the start."""

from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations

_GIVEN = {"Administrators": ("view", "add", "change", "delete"), "Auditors": ("view",)}


def give(apps: Any, _editor: Any) -> None:
    # Those of a new model are made after all migrations, which is too late here.
    chat = apps.get_app_config("chat")
    chat.models_module = True
    create_permissions(chat, apps=apps, verbosity=0)
    chat.models_module = None
    for name, actions in _GIVEN.items():
        named = [f"{action}_languagemodel" for action in actions]
        given = apps.get_model("auth", "Permission").objects.filter(codename__in=named)
        for group in apps.get_model("auth", "Group").objects.filter(
            name=name, permissions__codename="view_questionbudget"
        ):
            group.permissions.add(*given)


class Migration(migrations.Migration):
    dependencies = [("ragsite", "0009_no_superusers_by_claims"), ("chat", "0017_language_models")]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
