from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0012_questions_that_were_joined"),
    ]

    operations = [
        migrations.AddField(
            model_name="answer",
            name="computed",
            field=models.JSONField(editable=False, null=True),
        ),
    ]
