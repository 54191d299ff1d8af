from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0008_languages_of_documents'),
    ]

    operations = [
        migrations.AddField(
            model_name='embedder',
            name='options',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
