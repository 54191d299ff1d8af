from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0001_tables")]
    old_code_survives = "There is no release before this one."

    operations = [
        migrations.RemoveField("evaluationset", "created_by"),
        migrations.RemoveField("experiment", "created_by"),
    ]
