import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ragsite', '0002_lists_of_sources_of_keys'),
    ]

    operations = [
        migrations.AlterField(
            model_name='auditentry',
            name='object_person',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ragsite.auditperson', verbose_name='subject'),
        ),
    ]
