from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0009_answer_source_collections")]

    operations = [
        migrations.AddField("citation", "marker_start", models.PositiveIntegerField(default=0), preserve_default=False),
        migrations.AddField("citation", "marker_end", models.PositiveIntegerField(default=0), preserve_default=False),
    ]
