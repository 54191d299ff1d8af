import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import pgvector.django.vector
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """All tables. A site that has gone through the migrations that it replaces has it already."""

    initial = True
    replaces = [
        ("chat", name)
        for name in (
            "0001_initial",
            "0002_blocks_tables_and_forms",
            "0003_api_key_of_a_question",
            "0004_deleted_documents",
            "0005_question_budgets",
            "0006_what_answers_rest_on",
            "0007_what_is_shared",
            "0008_model_budgets",
            "0009_list_of_answers",
            "0010_retrievers_that_did_not_answer",
            "0011_marked_places",
            "0012_questions_that_were_joined",
            "0013_computed",
            "0014_approved_answers",
            "0015_model_trial",
            "0016_budget_of_everybody",
            "0017_language_models",
            "0018_scope_of_a_question",
            "0019_instructions_of_collections",
        )
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('retrieval', '0001_tables'),
    ]

    operations = [
        migrations.CreateModel(
            name='DeletedDocument',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('document_id', models.BigIntegerField()),
                ('title', models.CharField(max_length=500)),
                ('added_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='ModelTrial',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(max_length=500, unique=True)),
                ('uses_functions', models.BooleanField(null=True)),
                ('tried_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='ApprovedAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('question', models.CharField(max_length=500, verbose_name='question')),
                ('kind', models.CharField(choices=[('answer', 'answer'), ('out_of_scope', 'out of scope')], default='answer', max_length=12, verbose_name='kind')),
                ('text', models.TextField(help_text='Markdown. [1] cites the first of the passages below.', verbose_name='answer')),
                ('expires_on', models.DateField(blank=True, help_text='The last day on which it is shown. Empty: no end.', null=True, verbose_name='valid until')),
                ('state', models.CharField(choices=[('draft', 'draft'), ('approved', 'approved'), ('withdrawn', 'withdrawn')], db_index=True, default='draft', max_length=10, verbose_name='state')),
                ('approved_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='approved')),
                ('flag', models.CharField(blank=True, choices=[('gone', 'a cited document is gone'), ('changed', 'a cited passage has changed'), ('expired', 'it has expired'), ('unhelpful', 'a reader found it unhelpful')], editable=False, max_length=10, verbose_name='to look at')),
                ('flagged_at', models.DateTimeField(editable=False, null=True)),
                ('told_at', models.DateTimeField(editable=False, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='added')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('approved_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='approved by')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='approved_answers', to='retrieval.collection', verbose_name='collection')),
                ('owner', models.ForeignKey(blank=True, help_text='Gets a mail when this answer has to be reviewed.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='owner')),
            ],
            options={
                'verbose_name': 'approved answer',
                'verbose_name_plural': 'approved answers',
                'ordering': ['question', 'id'],
            },
        ),
        migrations.CreateModel(
            name='Answer',
            fields=[
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('lease', models.UUIDField(blank=True, editable=False, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('question', models.CharField(max_length=500, verbose_name='question')),
                ('method', models.CharField(max_length=12)),
                ('model', models.CharField(max_length=200)),
                ('history', models.JSONField(null=True)),
                ('anew', models.BooleanField(default=False)),
                ('asked_within', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), null=True, size=None)),
                ('status', models.CharField(choices=[('pending', 'waiting'), ('generating', 'being written'), ('completed', 'complete'), ('stopped', 'stopped'), ('failed', 'failed')], db_index=True, default='pending', max_length=12, verbose_name='status')),
                ('text', models.TextField()),
                ('refused', models.BooleanField(default=False, verbose_name='no answer in the documents')),
                ('near', models.JSONField(default=list)),
                ('choices', models.JSONField(default=list)),
                ('error', models.TextField(verbose_name='error')),
                ('notice', models.TextField(help_text='A fallback that was shown to the reader.', verbose_name='notice')),
                ('search_method', models.CharField(max_length=12, verbose_name='search method')),
                ('degraded', models.JSONField(default=list)),
                ('generator', models.CharField(max_length=200, verbose_name='written by')),
                ('prompt_version', models.PositiveSmallIntegerField(null=True)),
                ('usage', models.JSONField(default=dict)),
                ('completed_question', models.TextField()),
                ('joined_question', models.TextField()),
                ('confidence', models.FloatField(null=True)),
                ('computed', models.JSONField(null=True)),
                ('statements', models.JSONField(default=list)),
                ('cache_key', models.CharField(max_length=64)),
                ('sources', models.JSONField(default=list)),
                ('source_collections', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('source_documents', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('narrowing_key', models.CharField(max_length=64)),
                ('trace', models.JSONField(default=dict)),
                ('timings_ms', models.JSONField(default=dict)),
                ('followed_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='asked')),
                ('completed_at', models.DateTimeField(null=True, verbose_name='answered')),
                ('collection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='retrieval.collection', verbose_name='collection')),
                ('document', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='retrieval.document')),
                ('profile_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='retrieval.searchprofileversion')),
                ('repeats', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chat.answer')),
                ('approved', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='given', to='chat.approvedanswer')),
            ],
            options={
                'verbose_name': 'answer',
                'verbose_name_plural': 'answers',
                'ordering': ['created_at'],
                'indexes': [models.Index(fields=['cache_key', '-created_at'], name='answer_by_cache_key'), models.Index(fields=['-created_at', '-id'], name='answer_by_time'), models.Index(fields=['generator'], name='answer_by_generator'), models.Index(fields=['search_method'], name='answer_by_search_method')],
            },
        ),
        migrations.CreateModel(
            name='ApprovedQuestion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.CharField(max_length=500)),
                ('normalized', models.CharField(db_index=True, max_length=500)),
                ('embedder', models.CharField(blank=True, max_length=200)),
                ('embedding', pgvector.django.vector.VectorField(null=True)),
                ('approved', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='questions', to='chat.approvedanswer')),
            ],
            options={
                'ordering': ['id'],
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
                ('support', models.FloatField(null=True, verbose_name='support')),
                ('verbatim', models.BooleanField(default=False, verbose_name='word for word')),
                ('marked_start', models.PositiveIntegerField(null=True)),
                ('marked_end', models.PositiveIntegerField(null=True)),
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
                ('visitor', models.CharField(db_index=True, max_length=64)),
                ('key', models.CharField(max_length=16)),
                ('model', models.CharField(max_length=200)),
                ('share_token', models.UUIDField(null=True, unique=True)),
                ('shared_at', models.DateTimeField(null=True)),
                ('share_scope', models.CharField(choices=[('answer', 'one answer'), ('now', 'the conversation as it stands'), ('following', 'the conversation with what follows')], default='now', max_length=10)),
                ('share_audience', models.CharField(choices=[('link', 'anyone with the link'), ('signed_in', 'people who have signed in')], default='link', max_length=10)),
                ('title', models.CharField(max_length=200, verbose_name='title')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='started')),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='last question')),
                ('branched_from', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='branches', to='chat.answer')),
                ('collection', models.ForeignKey(help_text='Empty: all.', null=True, on_delete=django.db.models.deletion.SET_NULL, to='retrieval.collection', verbose_name='collection')),
                ('document', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='retrieval.document')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='conversations', to=settings.AUTH_USER_MODEL)),
                ('shared_answer', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='chat.answer')),
            ],
            options={
                'verbose_name': 'conversation',
                'verbose_name_plural': 'conversations',
                'ordering': ['-updated_at'],
                'constraints': [models.CheckConstraint(condition=models.Q(('owner', None), ('visitor', ''), _connector='OR'), name='conversation_has_one_owner')],
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
            name='LanguageModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='Shown to readers and used in the API. Letters, digits, dots and hyphens.', max_length=60, unique=True, validators=[django.core.validators.RegexValidator('\\A[A-Za-z0-9][A-Za-z0-9._:-]*\\Z', 'Letters, digits, dots and hyphens only.')], verbose_name='name')),
                ('base_url', models.CharField(max_length=1000, verbose_name='address')),
                ('model', models.CharField(help_text='The name that its server uses for it.', max_length=200, verbose_name='model')),
                ('secret', models.TextField(blank=True, editable=False)),
                ('context_tokens', models.PositiveIntegerField(default=16000, help_text='The largest number of tokens of a prompt and its answer together.', validators=[django.core.validators.MinValueValidator(1000)], verbose_name='context tokens')),
                ('price_prompt', models.FloatField(default=0, help_text='Per million tokens. All prices must have the same currency; budgets use them.', validators=[django.core.validators.MinValueValidator(0)], verbose_name='price of tokens read')),
                ('price_completion', models.FloatField(default=0, help_text='Per million tokens.', validators=[django.core.validators.MinValueValidator(0)], verbose_name='price of tokens written')),
                ('is_default', models.BooleanField(default=False, help_text='Used if no other model is chosen. Only one model can be the default.', verbose_name='default')),
                ('is_enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('groups', models.ManyToManyField(blank=True, help_text='Who may choose it. Empty: everybody who may ask.', related_name='+', to='auth.group', verbose_name='groups')),
            ],
            options={
                'verbose_name': 'language model',
                'verbose_name_plural': 'language models',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='QuestionBudget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('questions_a_day', models.PositiveIntegerField(blank=True, help_text="A person's own budget counts first, then the largest of the person's groups, then everybody's.", null=True, verbose_name='questions a day')),
                ('tokens_a_day', models.PositiveBigIntegerField(blank=True, help_text='Read and written by the language model. After that, answers are quoted from the documents.', null=True, verbose_name='model tokens a day')),
                ('cost_a_day', models.DecimalField(blank=True, decimal_places=4, help_text="In the currency of the language models' prices.", max_digits=12, null=True, validators=[django.core.validators.MinValueValidator(0)], verbose_name='model cost a day')),
                ('group', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='auth.group', verbose_name='group')),
                ('user', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'budget',
                'verbose_name_plural': 'budgets',
                'ordering': ['pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('user', None), ('group', None), _connector='OR'), name='budget_of_a_user_a_group_or_everybody', violation_error_message='Choose a user or a group, not both.'), models.UniqueConstraint(fields=('user', 'group'), name='one_budget_each', nulls_distinct=False, violation_error_message='There is such a budget already.')],
            },
        ),
        migrations.CreateModel(
            name='QuestionCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField()),
                ('number', models.PositiveIntegerField(default=0)),
                ('tokens', models.PositiveBigIntegerField(default=0)),
                ('cost', models.DecimalField(decimal_places=8, default=0, max_digits=16)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'day'), name='one_question_count_a_day')],
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
                'constraints': [models.UniqueConstraint(fields=('answer', 'attempt', 'sequence'), name='one_event_per_number')],
            },
        ),
        migrations.CreateModel(
            name='ApprovedSource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('marker', models.PositiveSmallIntegerField()),
                ('document_title', models.CharField(max_length=500)),
                ('quote', models.TextField()),
                ('text_version', models.CharField(blank=True, max_length=130)),
                ('approved', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sources', to='chat.approvedanswer')),
                ('document', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='retrieval.document')),
            ],
            options={
                'ordering': ['marker'],
                'constraints': [models.UniqueConstraint(fields=('approved', 'marker'), name='one_source_per_marker')],
            },
        ),
        migrations.CreateModel(
            name='CollectionInstructions',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(editable=False, verbose_name='version')),
                ('text', models.TextField(help_text="Tone, language, and what to say when unsure, for the language model: at most 800 characters, which take room from the sources. The site's rules on sources and citations come first.", validators=[django.core.validators.MaxLengthValidator(800)], verbose_name='instructions')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='made')),
                ('is_active', models.BooleanField(default=False, editable=False, verbose_name='in force')),
                ('requested_at', models.DateTimeField(editable=False, null=True, verbose_name='asked for')),
                ('outcome', models.TextField(blank=True, editable=False, verbose_name='outcome')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='instructions', to='retrieval.collection', verbose_name='collection')),
                ('created_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='made by')),
                ('requested_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'instructions of a collection',
                'verbose_name_plural': 'instructions of collections',
                'ordering': ['collection', '-number'],
                'constraints': [models.UniqueConstraint(fields=('collection', 'number'), name='one_instructions_per_number'), models.UniqueConstraint(condition=models.Q(('is_active', True)), fields=('collection',), name='one_active_instructions_per_collection')],
            },
        ),
        migrations.AddIndex(
            model_name='answer',
            index=models.Index(fields=['completed_at'], include=('id', 'conversation', 'status', 'refused', 'search_method', 'repeats', 'degraded', 'timings_ms'), name='answer_figures'),
        ),
    ]
