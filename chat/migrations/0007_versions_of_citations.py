from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0006_filters_of_questions'),
    ]

    operations = [
        migrations.AddField(
            model_name='citation',
            name='text_version',
            field=models.CharField(db_default='', default='', max_length=130),
        ),
    ]
