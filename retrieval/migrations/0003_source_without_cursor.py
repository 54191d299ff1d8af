from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0002_without_bulk_loading")]
    old_code_survives = "There is no release before this one."

    operations = [migrations.RemoveField(model_name="source", name="cursor")]
