from django.db import migrations


class Migration(migrations.Migration):
    # It wrote the terms of tables, which 0005 removes.
    dependencies = [("retrieval", "0003_source_without_cursor")]

    operations = []
