from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0010_source_metadata")]

    operations = [
        migrations.CreateModel(
            name="RequestCount",
            fields=[
                ("key", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("calls", models.PositiveIntegerField()),
                ("since", models.DateTimeField()),
            ],
        ),
        # Not worth its share of the write-ahead log; half-empty pages, so that a count is changed where it stands.
        migrations.RunSQL(
            "ALTER TABLE retrieval_requestcount SET UNLOGGED; ALTER TABLE retrieval_requestcount SET (fillfactor = 50)",
            migrations.RunSQL.noop,
        ),
    ]
