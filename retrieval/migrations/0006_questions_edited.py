from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0005_token_signs")]

    operations = [
        migrations.AddField(
            model_name="chunk",
            name="questions_edited",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Kept when the document is read again, as long as the passage is the same.",
                verbose_name="questions written by hand",
            ),
        ),
    ]
