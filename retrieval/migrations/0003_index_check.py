from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0002_bm25")]

    operations = [
        migrations.CreateModel(
            name="IndexCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("finished_at", models.DateTimeField(auto_now_add=True, verbose_name="time")),
                ("seconds", models.FloatField(verbose_name="seconds")),
                ("inconsistencies", models.JSONField(default=list, verbose_name="inconsistencies")),
            ],
            options={
                "verbose_name": "index check",
                "verbose_name_plural": "index checks",
                "ordering": ["-pk"],
            },
        ),
    ]
