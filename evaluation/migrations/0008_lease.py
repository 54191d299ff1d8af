from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0007_drafts")]

    operations = [
        migrations.RemoveConstraint("judgement", "running_judgement_is_claimed"),
        migrations.RemoveConstraint("evaluationrun", "running_evaluation_is_claimed"),
        migrations.RenameField("judgement", "claim", "lease"),
        migrations.RenameField("judgement", "next_attempt_at", "retry_at"),
        migrations.RenameField("evaluationrun", "claim", "lease"),
        migrations.RenameField("evaluationrun", "next_attempt_at", "retry_at"),
    ]
