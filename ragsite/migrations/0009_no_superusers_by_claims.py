from django.db import migrations


class Migration(migrations.Migration):
    old_code_survives = "There is no release before this one."

    dependencies = [("ragsite", "0008_curators_approve_answers")]

    operations = [migrations.RemoveField("claimedrights", "is_superuser")]
