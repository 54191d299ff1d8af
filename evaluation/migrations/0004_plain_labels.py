import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    old_code_survives = "Only labels change."

    dependencies = [
        ('evaluation', '0003_embedder_trial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='answerresult',
            name='completion_tokens',
            field=models.PositiveIntegerField(default=0, verbose_name='completion tokens'),
        ),
        migrations.AlterField(
            model_name='answerresult',
            name='prompt_tokens',
            field=models.PositiveIntegerField(default=0, verbose_name='prompt tokens'),
        ),
        migrations.AlterField(
            model_name='evaluationquestion',
            name='must',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, help_text='One per line. Put | between alternatives, of which one is enough: 14 days|two weeks.', size=None, verbose_name='must contain'),
        ),
        migrations.AlterField(
            model_name='evaluationquestion',
            name='must_not',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, help_text='What a right answer must not say, one per line.', size=None, verbose_name='must not contain'),
        ),
        migrations.AlterField(
            model_name='judgement',
            name='completion_tokens',
            field=models.PositiveIntegerField(default=0, verbose_name='completion tokens'),
        ),
        migrations.AlterField(
            model_name='judgement',
            name='prompt_tokens',
            field=models.PositiveIntegerField(default=0, verbose_name='prompt tokens'),
        ),
        migrations.AlterField(
            model_name='judgeusage',
            name='completion_tokens',
            field=models.PositiveBigIntegerField(default=0, verbose_name='completion tokens'),
        ),
        migrations.AlterField(
            model_name='judgeusage',
            name='prompt_tokens',
            field=models.PositiveBigIntegerField(default=0, verbose_name='prompt tokens'),
        ),
    ]
