from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0001_tables")]

    operations = [migrations.RemoveField(model_name="source", name="cursor")]
