import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        # Their tables are looked into when tokens are carried over.
        ('admin', '0003_logentry_add_action_flag_choices'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('ragsite', '0001_sign_in_counts'),
        ('retrieval', '0001_tables'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='What it is used for, and where.', max_length=100, verbose_name='name')),
                ('public_id', models.CharField(editable=False, max_length=16, unique=True, verbose_name='begins with')),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('search', 'search: search, and list collections and documents'), ('ask', "ask: ask questions, and read and change one's own conversations"), ('documents:write', 'documents:write: add, replace and delete documents'), ('admin', 'admin: everything that the account may do')], max_length=20), size=None, verbose_name='scopes')),
                ('is_limited', models.BooleanField(default=False, verbose_name='limited to collections')),
                ('rate', models.CharField(blank=True, help_text='The most requests with this key, such as 60/min. Empty: the limit of every account.', max_length=20, validators=[django.core.validators.RegexValidator('\\A[1-9][0-9]{0,6}/(s|sec|min|hour|day)\\Z', 'Write a rate as a number and a period: 10/s, 60/min, 1000/hour or 5000/day.')], verbose_name='rate')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('expires_at', models.DateTimeField(blank=True, help_text='Empty: never.', null=True, verbose_name='expires')),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='last used')),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='revoked')),
                ('collections', models.ManyToManyField(blank=True, help_text='For a limited key: the collections that it may use, if its account may read them.', related_name='+', to='retrieval.collection', verbose_name='collections')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to=settings.AUTH_USER_MODEL, verbose_name='account')),
            ],
            options={
                'verbose_name': 'API key',
                'verbose_name_plural': 'API keys',
                'ordering': ['-pk'],
            },
        ),
    ]
