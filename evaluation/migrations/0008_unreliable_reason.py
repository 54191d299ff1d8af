from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0007_drafts")]

    operations = [
        migrations.RenameField(model_name="evaluationrun", old_name="distrust", new_name="unreliable_reason"),
    ]
