from django.db import migrations, models


class Migration(migrations.Migration):
    old_code_survives = "A verbose name is the program's alone."

    dependencies = [
        ('chat', '0009_plainer_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='answer',
            name='total_ms',
            field=models.FloatField(null=True, verbose_name='milliseconds in all'),
        ),
        migrations.AddField(
            model_name='answer',
            name='search_ms',
            field=models.FloatField(null=True, verbose_name='milliseconds of the search'),
        ),
        migrations.AlterField(
            model_name='answer',
            name='confidence',
            field=models.FloatField(null=True, verbose_name='confidence'),
        ),
    ]
