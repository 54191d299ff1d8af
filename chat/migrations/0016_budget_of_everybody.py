from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    old_code_survives = "There is no release before this one."

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("chat", "0015_model_trial"),
    ]

    operations = [
        migrations.RemoveConstraint("questionbudget", "budget_of_a_user_or_a_group"),
        migrations.AlterField(
            "questionbudget",
            "questions_a_day",
            models.PositiveIntegerField(
                "questions a day",
                null=True,
                blank=True,
                help_text="A person's own budget counts first, then the largest of the person's groups, then everybody's.",
            ),
        ),
        migrations.AddConstraint(
            "questionbudget",
            models.CheckConstraint(
                condition=models.Q(user=None) | models.Q(group=None),
                name="budget_of_a_user_a_group_or_everybody",
                violation_error_message="Choose a user or a group, not both.",
            ),
        ),
        migrations.AddConstraint(
            "questionbudget",
            models.UniqueConstraint(
                fields=["user", "group"],
                name="one_budget_each",
                nulls_distinct=False,
                violation_error_message="There is such a budget already.",
            ),
        ),
    ]
