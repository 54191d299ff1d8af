from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0008_calibrations")]

    operations = [
        migrations.AddField("document", "left_out", models.JSONField(default=list, db_default=[], editable=False)),
        migrations.RunSQL(
            "UPDATE retrieval_document SET left_out = jsonb_build_array(jsonb_build_array('told', "
            "jsonb_build_array(notice), 1)) WHERE notice <> ''",
            migrations.RunSQL.noop,
        ),
        migrations.RemoveField("document", "notice"),
    ]
