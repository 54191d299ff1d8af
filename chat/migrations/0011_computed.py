from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0010_retrievers_that_did_not_answer"),
    ]

    operations = [
        migrations.AddField(
            model_name="answer",
            name="computed",
            field=models.JSONField(editable=False, null=True),
        ),
    ]
