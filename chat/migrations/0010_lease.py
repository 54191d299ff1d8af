from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("chat", "0009_answer_source_collections")]

    operations = [
        migrations.RenameField("answer", "claim", "lease"),
        migrations.RenameField("answer", "attempt", "attempts"),
    ]
