from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0013_instructions_in_documents")]

    operations = [
        migrations.RenameField("document", "claim", "lease"),
    ]
