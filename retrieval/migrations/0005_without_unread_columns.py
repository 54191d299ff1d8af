from django.db import migrations, models
from django.db.models.functions import MD5


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0004_terms_of_tables")]
    old_code_survives = "There is no release before this one."

    operations = [
        migrations.RemoveConstraint("sourceitem", "one_item_per_key"),
        migrations.RemoveIndex("sourceitem", "source_item_seen"),
        migrations.RemoveIndex("table", "table_terms"),
        migrations.RemoveField("embeddercalibration", "fitted_at"),
        migrations.RemoveField("sourceitem", "key_hash"),
        migrations.RemoveField("sourceitem", "last_seen_at"),
        migrations.RemoveField("table", "terms"),
        migrations.AddConstraint(
            "sourceitem", models.UniqueConstraint(models.F("source"), MD5("key"), name="one_item_per_key")
        ),
    ]
