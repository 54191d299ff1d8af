from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='SignInCount',
            fields=[
                ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('pair', 'Pair'), ('address', 'Address'), ('account', 'Account'), ('tokens', 'Tokens'), ('known', 'Known'), ('busy', 'Busy')], max_length=7)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('since', models.DateTimeField(db_index=True)),
                ('admitted_at', models.DateTimeField(null=True)),
            ],
        ),
    ]
