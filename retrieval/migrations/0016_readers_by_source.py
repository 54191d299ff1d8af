from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0015_connectors_of_others")]

    operations = [
        migrations.AddField("sourceitem", "readers", models.JSONField(null=True)),
        migrations.AddField("sourceitem", "own_groups", models.JSONField(null=True)),
    ]
