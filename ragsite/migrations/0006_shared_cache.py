from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """The table of Django's database cache, which a crash of the server empties."""

    dependencies = [("ragsite", "0005_rights_for_sources")]

    operations = [
        migrations.RunSQL(
            """
            CREATE UNLOGGED TABLE ragsite_cache (
                cache_key varchar(255) PRIMARY KEY, value text NOT NULL, expires timestamp with time zone NOT NULL
            );
            CREATE INDEX ragsite_cache_expires ON ragsite_cache (expires);
            """,
            "DROP TABLE ragsite_cache",
        )
    ]
