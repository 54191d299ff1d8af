from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0004_states_of_answers'),
    ]

    operations = [
        migrations.AlterField(
            model_name='conversation',
            name='share_scope',
            field=models.CharField(choices=[('answer', 'one answer'), ('now', 'the conversation so far'), ('following', 'the conversation with what follows')], default='now', max_length=10),
        ),
    ]
