import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('retrieval', '0001_tables'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Answer',
            fields=[
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('lease', models.UUIDField(blank=True, editable=False, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('question', models.CharField(max_length=500, verbose_name='question')),
                ('method', models.CharField(blank=True, help_text="Asked for; empty: the site's default.", max_length=12)),
                ('history', models.JSONField(blank=True, help_text='Earlier turns, if the client keeps them and not the site.', null=True, verbose_name='given history')),
                ('anew', models.BooleanField(default=False, help_text='Write a new answer, even if the same question was answered before.', verbose_name='asked anew')),
                ('status', models.CharField(choices=[('pending', 'waiting'), ('generating', 'being written'), ('completed', 'complete'), ('stopped', 'stopped'), ('failed', 'failed')], db_index=True, default='pending', max_length=12, verbose_name='status')),
                ('text', models.TextField(blank=True, verbose_name='answer')),
                ('refused', models.BooleanField(default=False, verbose_name='no answer in the documents')),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('notice', models.TextField(blank=True, help_text='A fallback that was shown to the reader.', verbose_name='notice')),
                ('search_method', models.CharField(blank=True, max_length=12, verbose_name='search method')),
                ('degraded', models.JSONField(blank=True, default=list, verbose_name='legs that did not answer')),
                ('generator', models.CharField(blank=True, max_length=200, verbose_name='written by')),
                ('prompt_version', models.PositiveSmallIntegerField(blank=True, help_text='Empty: no model was asked.', null=True, verbose_name='version of the prompt')),
                ('usage', models.JSONField(blank=True, default=dict, verbose_name='tokens and cost')),
                ('completed_question', models.TextField(blank=True, help_text='A follow-up question as it was searched.', verbose_name='completed question')),
                ('confidence', models.FloatField(blank=True, help_text='Probability that the documents answer the question, 0 to 1.', null=True, verbose_name='confidence')),
                ('statements', models.JSONField(blank=True, default=list, help_text='Each sentence of the answer, checked against its sources.', verbose_name='sentences')),
                ('cache_key', models.CharField(blank=True, editable=False, max_length=64)),
                ('sources', models.JSONField(blank=True, default=list)),
                ('source_collections', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, default=list, editable=False, size=None)),
                ('trace', models.JSONField(blank=True, default=dict)),
                ('timings_ms', models.JSONField(blank=True, default=dict)),
                ('followed_at', models.DateTimeField(editable=False, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='asked')),
                ('completed_at', models.DateTimeField(blank=True, null=True, verbose_name='answered')),
                ('profile_version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='retrieval.searchprofileversion', verbose_name='search profile')),
                ('repeats', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chat.answer', verbose_name='repeats the answer')),
            ],
            options={
                'verbose_name': 'answer',
                'verbose_name_plural': 'answers',
                'ordering': ['created_at'],
            },
        ),
        migrations.CreateModel(
            name='Citation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('marker', models.PositiveSmallIntegerField()),
                ('marker_start', models.PositiveIntegerField()),
                ('marker_end', models.PositiveIntegerField()),
                ('document_title', models.CharField(max_length=500)),
                ('section', models.TextField(blank=True)),
                ('page', models.PositiveIntegerField(null=True)),
                ('quote', models.TextField()),
                ('start', models.PositiveIntegerField()),
                ('end', models.PositiveIntegerField()),
                ('support', models.FloatField(null=True)),
                ('answer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='citations', to='chat.answer')),
                ('chunk', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='retrieval.chunk')),
                ('document', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='retrieval.document')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('visitor', models.CharField(blank=True, db_index=True, editable=False, max_length=64)),
                ('share_token', models.UUIDField(blank=True, editable=False, null=True, unique=True)),
                ('shared_at', models.DateTimeField(blank=True, null=True, verbose_name='shared')),
                ('title', models.CharField(blank=True, max_length=200, verbose_name='title')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='started')),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='last question')),
                ('collection', models.ForeignKey(blank=True, help_text='Empty: all.', null=True, on_delete=django.db.models.deletion.SET_NULL, to='retrieval.collection', verbose_name='collection')),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='conversations', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'conversation',
                'verbose_name_plural': 'conversations',
                'ordering': ['-updated_at'],
            },
        ),
        migrations.AddField(
            model_name='answer',
            name='conversation',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='chat.conversation'),
        ),
        migrations.CreateModel(
            name='Feedback',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('helpful', models.BooleanField(verbose_name='helpful')),
                ('reason', models.CharField(blank=True, choices=[('wrong', 'It is wrong'), ('incomplete', 'Something is missing'), ('sources', 'The sources do not say that'), ('outdated', 'The documents are out of date'), ('unanswered', 'It does not answer the question'), ('other', 'Something else')], max_length=12, verbose_name='reason')),
                ('comment', models.TextField(blank=True, verbose_name='comment')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='given')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('answer', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='feedback', to='chat.answer', verbose_name='answer')),
            ],
            options={
                'verbose_name': 'feedback',
                'verbose_name_plural': 'feedback',
            },
        ),
        migrations.CreateModel(
            name='StreamedEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.PositiveSmallIntegerField()),
                ('sequence', models.PositiveIntegerField()),
                ('name', models.CharField(max_length=12)),
                ('payload', models.JSONField()),
                ('answer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='chat.answer')),
            ],
            options={
                'ordering': ['attempt', 'sequence'],
            },
        ),
        migrations.AddConstraint(
            model_name='conversation',
            constraint=models.CheckConstraint(condition=models.Q(('owner', None), ('visitor', ''), _connector='OR'), name='conversation_has_one_owner'),
        ),
        migrations.AddIndex(
            model_name='answer',
            index=models.Index(fields=['cache_key', '-created_at'], name='answer_by_cache_key'),
        ),
        migrations.AddIndex(
            model_name='answer',
            index=models.Index(fields=['completed_at'], include=('id', 'conversation', 'status', 'refused', 'search_method', 'repeats', 'degraded', 'timings_ms'), name='answer_figures'),
        ),
        migrations.AddConstraint(
            model_name='streamedevent',
            constraint=models.UniqueConstraint(fields=('answer', 'attempt', 'sequence'), name='one_event_per_number'),
        ),
    ]
