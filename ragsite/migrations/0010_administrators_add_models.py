"""The groups of a site that is there already get their rights in language models and in instructions, which came later.
On a new site they have them from the start."""

from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations

_MODELS = ("languagemodel", "collectioninstructions")
_GIVEN = {
    "Administrators": [f"{action}_{model}" for model in _MODELS for action in ("view", "add", "change", "delete")],
    "Auditors": [f"view_{model}" for model in _MODELS],
    "Curators": [f"{action}_collectioninstructions" for action in ("view", "add", "change")],
}


def give(apps: Any, _editor: Any) -> None:
    # Those of a new model are made after all migrations, which is too late here.
    chat = apps.get_app_config("chat")
    chat.models_module = True
    create_permissions(chat, apps=apps, verbosity=0)
    chat.models_module = None
    for name, named in _GIVEN.items():
        given = apps.get_model("auth", "Permission").objects.filter(codename__in=named)
        for group in apps.get_model("auth", "Group").objects.filter(name=name, permissions__codename="view_answer"):
            group.permissions.add(*given)


class Migration(migrations.Migration):
    dependencies = [("ragsite", "0009_no_superusers_by_claims"), ("chat", "0019_instructions_of_collections")]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
