from django.db import migrations

from retrieval.tables.lexicon import terms_of


def write_terms(apps, schema_editor):
    """In the form in which questions look for them now."""
    for table in apps.get_model("retrieval", "Table").objects.only("caption", "columns").iterator():
        table.terms = terms_of(table.caption, [column[0] for column in table.columns])
        table.save(update_fields=["terms"])


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0003_source_without_cursor")]

    operations = [migrations.RunPython(write_terms, migrations.RunPython.noop)]
