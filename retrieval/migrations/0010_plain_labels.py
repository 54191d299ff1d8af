from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0009_chosen_embedder'),
    ]

    operations = [
        migrations.AlterField(
            model_name='collection',
            name='visibility',
            field=models.CharField(choices=[('public', 'everybody'), ('signed_in', 'everybody who has signed in'), ('staff', 'staff'), ('granted', 'only people and groups with a grant')], default='public', help_text='In addition to the people and groups listed below.', max_length=10, verbose_name='who may ask it'),
        ),
        migrations.AlterField(
            model_name='embedder',
            name='dimension',
            field=models.PositiveIntegerField(verbose_name='dimensions'),
        ),
    ]
