import django.core.serializers.json
import django.db.models.deletion
import django.utils.timezone
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


class Migration(migrations.Migration):

    dependencies = [
        ('ragsite', '0002_api_keys'),
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
    ]
