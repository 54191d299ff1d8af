from django.db import migrations, models

# Refusals that listed passages, and those that did not.
FILL_IN = """
    UPDATE chat_answer SET state = CASE WHEN near = '[]'::jsonb THEN 'nothing' ELSE 'closest' END WHERE refused
"""


class Migration(migrations.Migration):

    old_code_survives = "The column keeps its name; only the field has another one."

    dependencies = [
        ('chat', '0003_written_text'),
    ]

    operations = [
        # The column keeps its name, for processes of the release before.
        migrations.AlterField('answer', 'near', models.JSONField(db_column='near', default=list)),
        migrations.RenameField('answer', 'near', 'alternatives'),
        migrations.AddField(
            model_name='answer',
            name='state',
            field=models.CharField(choices=[('answer', 'answered'), ('closest', 'closest passages'), ('nothing', 'nothing found')], db_default='answer', default='answer', max_length=8, verbose_name='state'),
        ),
        migrations.RunSQL(FILL_IN, migrations.RunSQL.noop),
        migrations.AddField(
            model_name='answer',
            name='table',
            field=models.JSONField(null=True),
        ),
    ]
