import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0002_blocks_tables_and_forms'),
    ]

    operations = [
        migrations.AddField(
            model_name='answer',
            name='asked_within',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, editable=False, null=True, size=None),
        ),
        migrations.AddField(
            model_name='conversation',
            name='key',
            field=models.CharField(blank=True, editable=False, max_length=16),
        ),
    ]
