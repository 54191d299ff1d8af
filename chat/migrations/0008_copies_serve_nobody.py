from typing import Any

from django.db import migrations
from django.db.models import Q


def forget_keys_of_copies(apps: Any, schema_editor: Any) -> None:
    """A copy whose original was deleted must not serve in its place: what was thought of the original is gone with it.

    Such a copy names no original any more, but its trace says that it is one.
    """
    copies = Q(repeats__isnull=False) | Q(trace__has_key="repeats")
    answers = apps.get_model("chat", "Answer").objects.using(schema_editor.connection.alias)
    answers.filter(copies).exclude(cache_key="").update(cache_key="")


class Migration(migrations.Migration):
    dependencies = [("chat", "0007_answer_figures")]

    operations = [migrations.RunPython(forget_keys_of_copies, migrations.RunPython.noop, elidable=True)]
