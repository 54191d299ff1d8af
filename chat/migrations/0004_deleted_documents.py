from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0003_api_key_of_a_question'),
    ]

    operations = [
        migrations.CreateModel(
            name='DeletedDocument',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('document_id', models.BigIntegerField()),
                ('title', models.CharField(blank=True, max_length=500)),
                ('added_at', models.DateTimeField()),
            ],
        ),
    ]
