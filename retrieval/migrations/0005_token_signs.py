from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0004_search_profile")]

    operations = [
        migrations.AddField(
            model_name="chunkembedding", name="token_signs", field=models.BinaryField(null=True)
        ),
        # Signs look random: compressing them costs time and saves nothing. Kept out of the row, they do not slow down
        # the comparison of vectors row by row.
        migrations.RunSQL(
            "ALTER TABLE retrieval_chunkembedding ALTER COLUMN token_signs SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
    ]
