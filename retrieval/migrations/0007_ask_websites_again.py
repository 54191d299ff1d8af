from django.db import migrations

# Links, canonical addresses and directives for robots are read differently now: an answer "unchanged" would keep what
# was made of a page before.
FORGET = """
    UPDATE retrieval_sourceitem SET validators = '{}'
    WHERE source_id IN (SELECT id FROM retrieval_source WHERE kind = 'website')
"""


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0006_webhook_pauses'),
    ]

    operations = [
        migrations.RunSQL(FORGET, migrations.RunSQL.noop),
    ]
