import django.contrib.postgres.fields
import django.core.serializers.json
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import ragsite.models.account
from django.conf import settings
from django.db import migrations, models

# Entries are added. They go when they are old, in a transaction that says that it tends the log, and never change.
APPEND_ONLY = """
CREATE FUNCTION ragsite_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' AND current_setting('ragsite.audit_retention', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The audit log is append-only: entries are neither changed nor deleted.'
        USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON ragsite_auditentry
    FOR EACH ROW EXECUTE FUNCTION ragsite_audit_append_only();
CREATE TRIGGER audit_not_truncated BEFORE TRUNCATE ON ragsite_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION ragsite_audit_append_only();
"""
NOT_APPEND_ONLY = """
DROP TRIGGER audit_not_truncated ON ragsite_auditentry;
DROP TRIGGER audit_append_only ON ragsite_auditentry;
DROP FUNCTION ragsite_audit_append_only();
"""
# The table of Django's database cache, which a crash of the server empties.
CREATE_CACHE = """
CREATE UNLOGGED TABLE ragsite_cache (
    cache_key varchar(255) PRIMARY KEY, value text NOT NULL, expires timestamp with time zone NOT NULL
);
CREATE INDEX ragsite_cache_expires ON ragsite_cache (expires);
"""


class Migration(migrations.Migration):
    """All tables. A site that has gone through the migrations that it replaces has it already."""

    initial = True
    replaces = [
        ("ragsite", name)
        for name in (
            "0001_sign_in_counts",
            "0002_api_keys",
            "0003_audit_log",
            "0004_accounts",
            "0005_rights_for_sources",
            "0006_shared_cache",
            "0007_curators_see_answers",
            "0008_curators_approve_answers",
            "0009_no_superusers_by_claims",
            "0010_administrators_add_models",
        )
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('retrieval', '0001_tables'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditPerson',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user_id', models.BigIntegerField(null=True, unique=True)),
                ('name', models.CharField(max_length=200, verbose_name='name')),
            ],
            options={
                'verbose_name': 'person in the audit log',
                'verbose_name_plural': 'persons in the audit log',
            },
        ),
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
        migrations.CreateModel(
            name='ClaimedRights',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_staff', models.BooleanField(default=False)),
                ('groups', models.ManyToManyField(related_name='+', to='auth.group')),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='claimed_rights', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254, verbose_name='e-mail address')),
                ('token_hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('expires_at', models.DateTimeField(default=ragsite.models.account.invitation_expiry, verbose_name='expires')),
                ('accepted_at', models.DateTimeField(editable=False, null=True, verbose_name='accepted')),
                ('accepted_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='account')),
                ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='invited by')),
                ('groups', models.ManyToManyField(blank=True, help_text='Given to the account when it is made.', to='auth.group', verbose_name='groups')),
            ],
            options={
                'verbose_name': 'invitation',
                'verbose_name_plural': 'invitations',
                'ordering': ['-created_at'],
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now, verbose_name='time')),
                ('action', models.CharField(db_index=True, max_length=60, verbose_name='action')),
                ('key', models.CharField(blank=True, max_length=16, verbose_name='with the API key')),
                ('via', models.CharField(choices=[('page', 'a page'), ('api', 'the API'), ('command', 'a command'), ('task', 'a background task')], max_length=8, verbose_name='by way of')),
                ('address', models.CharField(blank=True, max_length=60, verbose_name='address')),
                ('object_type', models.CharField(blank=True, max_length=60, verbose_name='kind of object')),
                ('object_id', models.CharField(blank=True, max_length=60, verbose_name='id of the object')),
                ('object_label', models.CharField(blank=True, max_length=300, verbose_name='object')),
                ('details', models.JSONField(blank=True, default=dict, encoder=django.core.serializers.json.DjangoJSONEncoder, verbose_name='details')),
                ('actor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ragsite.auditperson', verbose_name='who did it')),
                ('object_person', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='ragsite.auditperson', verbose_name='whom it concerns')),
            ],
            options={
                'verbose_name': 'audit entry',
                'verbose_name_plural': 'audit log',
                'ordering': ['-at', '-pk'],
                'indexes': [models.Index(fields=['object_type', 'object_id'], name='audit_by_object')],
            },
        ),
        migrations.RunSQL(APPEND_ONLY, NOT_APPEND_ONLY),
        migrations.RunSQL(CREATE_CACHE, 'DROP TABLE ragsite_cache'),
    ]
