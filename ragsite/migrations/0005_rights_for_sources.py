"""Groups that may do something with documents may do the same with sources, which came later than the groups.

Once: what is taken from a group afterwards stays taken. On a new site there are no groups yet, and they get it all.
"""

from typing import Any

from django.db import migrations

_GROUPS = ("Curators", "Administrators", "Auditors")
_ACTIONS = ("view", "add", "change", "delete")


def give(apps: Any, _editor: Any) -> None:
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(app_label="retrieval", model="source")
    permissions = apps.get_model("auth", "Permission").objects
    for group in apps.get_model("auth", "Group").objects.filter(name__in=_GROUPS):
        for action in _ACTIONS:
            if group.permissions.filter(content_type__app_label="retrieval", codename=f"{action}_document").exists():
                # They are made after all migrations, which may be this very run.
                named = {"content_type": kind, "codename": f"{action}_source"}
                permission, _ = permissions.get_or_create(**named, defaults={"name": f"Can {action} source"})
                group.permissions.add(permission)


class Migration(migrations.Migration):
    dependencies = [
        ("ragsite", "0004_accounts"),
        ("retrieval", "0001_tables"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
