from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0004_answer_history"),
    ]

    operations = [
        migrations.AddField(
            model_name="answer",
            name="anew",
            field=models.BooleanField(
                default=False,
                help_text="Not to be answered with an earlier answer to the same question.",
                verbose_name="asked anew",
            ),
        ),
    ]
