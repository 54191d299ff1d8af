from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0001_tables")]
    old_code_survives = "There is no release before this one."

    operations = [
        migrations.RemoveIndex("document", "document_awaits_vectors"),
        migrations.RemoveField("document", "awaits_vectors"),
    ]
