from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("ragsite", "0008_curators_approve_answers")]

    operations = [migrations.RemoveField("claimedrights", "is_superuser")]
