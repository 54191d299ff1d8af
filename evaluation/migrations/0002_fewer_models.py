from django.db import migrations, models


class Migration(migrations.Migration):
    """Exposures are computed from the answers; alerts, the refusal as a score, and what nothing read are gone."""

    dependencies = [("evaluation", "0001_initial")]

    operations = [
        migrations.DeleteModel("CorpusAlert"),
        migrations.DeleteModel("Exposure"),
        migrations.RunSQL("DELETE FROM evaluation_score WHERE metric = 'refusal'", migrations.RunSQL.noop),
        migrations.RemoveField("answerresult", "cited"),
        migrations.RemoveField("evaluationrun", "trigger"),
        migrations.RemoveField("experiment", "published_at"),
        migrations.RemoveField("experiment", "published_by"),
        migrations.RemoveField("gatepolicy", "watches_corpus"),
        migrations.RemoveField("judgement", "reference"),
        migrations.AlterField(
            "evaluationquestion",
            "origin",
            models.CharField(
                choices=[
                    ("manual", "written by hand"),
                    ("feedback", "answer that did not help"),
                    ("imported", "imported"),
                ],
                default="manual",
                max_length=10,
                verbose_name="origin",
            ),
        ),
        migrations.AlterField(
            "score",
            "metric",
            models.CharField(
                choices=[
                    ("groundedness", "groundedness"),
                    ("faithfulness", "faithfulness"),
                    ("citation_support", "citation support"),
                    ("answer_relevancy", "answer relevancy"),
                    ("contextual_relevancy", "context relevancy"),
                    ("contextual_precision", "context precision"),
                    ("contextual_recall", "context recall"),
                ],
                max_length=24,
                verbose_name="metric",
            ),
        ),
    ]
