from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0007_ask_websites_again'),
    ]

    operations = [
        migrations.AddField(
            model_name='embedder',
            name='options',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
