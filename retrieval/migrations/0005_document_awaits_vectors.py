from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0004_members_and_notices")]

    operations = [
        migrations.AddField(
            model_name="document",
            name="awaits_vectors",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(
                condition=models.Q(("awaits_vectors", True)), fields=["collection"], name="document_awaits_vectors"
            ),
        ),
    ]
