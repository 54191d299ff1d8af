from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0001_tables")]

    operations = [
        migrations.RemoveIndex("document", "document_awaits_vectors"),
        migrations.RemoveField("document", "awaits_vectors"),
    ]
