"""Late interaction and the splitting of compounds are gone: what was stored for them, and what profiles said of them.

`contrast` is searched as `zscore`, and what `maxsim` reranked is not reranked any more.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def adapt_profiles(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    versions = apps.get_model("retrieval", "SearchProfileVersion").objects
    for version in versions.all():
        stored = dict(version.settings)
        stored.pop("neighbour_support", None)
        stored.pop("compounds", None)
        if stored.get("method") == "contrast":
            stored |= {"method": "zscore", "weights": None}
        if stored.get("reranker") == "maxsim":
            stored["reranker"] = "none"
        if stored != version.settings:
            versions.filter(pk=version.pk).update(settings=stored)


class Migration(migrations.Migration):
    old_code_survives = "There is no release before this one."
    dependencies = [("retrieval", "0011_request_counts")]

    operations = [
        migrations.RunPython(adapt_profiles, migrations.RunPython.noop),
        migrations.RemoveField("chunkembedding", "token_signs"),
        migrations.RemoveIndex("lexeme", "lexeme_end"),
    ]
