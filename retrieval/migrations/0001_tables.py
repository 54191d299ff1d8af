import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.constraints
import django.db.models.deletion
import django.db.models.functions.text
import pgvector.django.halfvec
import pgvector.django.sparsevec
import retrieval.models.document
from django.conf import settings
from django.db import migrations, models
from pgvector.django import VectorExtension

# A search vector labels each position with the field it came from, A to D; a term's frequency is the sum of the boosts
# of its positions. The dimension is the one of retrieval.text.terms.lexeme_dimension.
CREATE_BM25_FUNCTIONS = """
CREATE FUNCTION retrieval_bm25_length(vector tsvector, boosts float8[]) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(sum(boosts[ascii(label) - 64]), 0)
    FROM unnest(vector) AS term(lexeme, positions, labels), unnest(labels) AS label
$$;

CREATE FUNCTION retrieval_bm25_weights(
    vector tsvector, boosts float8[], k1 float8, b float8, reference_length float8
) RETURNS sparsevec
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    WITH frequency AS (
        SELECT lexeme, sum(boosts[ascii(label) - 64]) AS tf
        FROM unnest(vector) AS term(lexeme, positions, labels), unnest(labels) AS label
        GROUP BY lexeme
    ), dimension AS (
        SELECT ('x' || left(md5(lexeme), 7))::bit(28)::int + 1 AS number,
               sum(tf * (k1 + 1) / (tf + k1 * (1 - b + b * (SELECT sum(tf) FROM frequency) / reference_length)))
                   AS weight
        FROM frequency
        WHERE tf > 0
        GROUP BY number
    )
    SELECT ('{' || coalesce(string_agg(number || ':' || weight::float4, ','), '') || '}/268435456')::sparsevec
    FROM dimension
$$;
"""

DROP_BM25_FUNCTIONS = """
DROP FUNCTION retrieval_bm25_weights(tsvector, float8[], float8, float8, float8);
DROP FUNCTION retrieval_bm25_length(tsvector, float8[]);
"""

# A question reads the term weights of every passage that matches: they stay in the row, where the large columns beside
# them may be moved out of it. The planner chooses the GIN index only while it knows the lexemes, so tables are analysed
# early.
TUNE_TABLES = """
ALTER TABLE retrieval_chunk ALTER COLUMN bm25 SET STORAGE MAIN;
ALTER TABLE retrieval_chunk ALTER COLUMN search_vector SET STATISTICS 1000;
ALTER TABLE retrieval_chunk
    SET (autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE retrieval_lexeme SET (fillfactor = 70);
-- Not worth its share of the write-ahead log; half-empty pages, so that a count is changed where it stands.
ALTER TABLE retrieval_requestcount SET UNLOGGED;
ALTER TABLE retrieval_requestcount SET (fillfactor = 50);
"""

# What a document is called, where it is found and what it is filtered by counts as a change of its collection. In the
# database, so that the version counts every such change, however it was made, and in its transaction.
CREATE_VERSION_TRIGGER = """
CREATE FUNCTION retrieval_document_described_anew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE retrieval_collectionstatistics SET version = version + 1 WHERE collection_id = NEW.collection_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER document_described_anew
AFTER UPDATE OF title, url, language, metadata ON retrieval_document
FOR EACH ROW
WHEN (
    (OLD.title, OLD.url, OLD.language, OLD.metadata) IS DISTINCT FROM (NEW.title, NEW.url, NEW.language, NEW.metadata)
)
EXECUTE FUNCTION retrieval_document_described_anew();
"""
DROP_VERSION_TRIGGER = """
DROP TRIGGER document_described_anew ON retrieval_document;
DROP FUNCTION retrieval_document_described_anew();
"""


class Migration(migrations.Migration):
    """All tables. A site that has gone through the migrations that it replaces has it already."""

    initial = True
    replaces = [
        ("retrieval", name)
        for name in (
            "0001_initial",
            "0002_blocks_tables_and_forms",
            "0003_collection_rights",
            "0004_members_and_notices",
            "0005_document_awaits_vectors",
            "0006_recognised_pages",
            "0007_sources",
            "0008_calibrations",
            "0009_document_left_out",
            "0010_source_metadata",
            "0011_request_counts",
            "0012_without_token_vectors",
            "0013_questions_written_by_hand",
            "0014_webhooks",
            "0015_document_review",
        )
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        VectorExtension(),
        migrations.CreateModel(
            name='Collection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(help_text='Used in addresses and commands.', unique=True, verbose_name='short name')),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('description', models.TextField(blank=True, verbose_name='description')),
                ('text_search_configuration', models.CharField(choices=[('simple', 'any language, words as they are'), ('english', 'English'), ('dutch', 'Dutch'), ('german', 'German'), ('french', 'French'), ('spanish', 'Spanish'), ('italian', 'Italian'), ('portuguese', 'Portuguese'), ('danish', 'Danish'), ('swedish', 'Swedish'), ('norwegian', 'Norwegian'), ('finnish', 'Finnish')], default='english', help_text="How words are stemmed for keyword search. If you change it, the collection's documents are indexed again.", max_length=20, verbose_name='language of the text')),
                ('visibility', models.CharField(choices=[('public', 'everybody'), ('signed_in', 'everybody who has signed in'), ('staff', 'staff'), ('granted', 'nobody but those who are named')], default='public', help_text='In addition to the people and groups listed below.', max_length=10, verbose_name='who may ask it')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
            ],
            options={
                'verbose_name': 'collection',
                'verbose_name_plural': 'collections',
                'ordering': ['name', 'id'],
            },
        ),
        migrations.CreateModel(
            name='EmbedderCalibration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True, verbose_name='embedder')),
                ('scale_version', models.PositiveIntegerField()),
                ('scales', models.JSONField()),
                ('passages', models.PositiveIntegerField(verbose_name='passages')),
                ('fitted_at', models.DateTimeField(auto_now=True, verbose_name='fitted')),
            ],
            options={
                'verbose_name': 'calibration of an embedder',
                'verbose_name_plural': 'calibrations of embedders',
            },
        ),
        migrations.CreateModel(
            name='IndexCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('finished_at', models.DateTimeField(auto_now_add=True, verbose_name='time')),
                ('seconds', models.FloatField(verbose_name='seconds')),
                ('inconsistencies', models.JSONField(default=list, verbose_name='inconsistencies')),
            ],
            options={
                'verbose_name': 'index check',
                'verbose_name_plural': 'index checks',
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='RequestCount',
            fields=[
                ('key', models.CharField(max_length=200, primary_key=True, serialize=False)),
                ('calls', models.PositiveIntegerField()),
                ('since', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='SearchProfile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(help_text='Names the profile in explanations, as in “default v3”.', unique=True, verbose_name='short name')),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('description', models.TextField(blank=True, help_text='What it is for, in a sentence or two.', verbose_name='description')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
            ],
            options={
                'verbose_name': 'search profile',
                'verbose_name_plural': 'search profiles',
                'ordering': ['name', 'id'],
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.URLField(max_length=1000, verbose_name='address')),
                ('secret', models.TextField(editable=False, verbose_name='secret')),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('answer.disliked', 'A reader found an answer unhelpful'), ('question.unanswered', 'The documents did not answer a question'), ('document.failed', 'A document could not be read'), ('approved_answer.flagged', 'An approved answer was flagged')], max_length=40), size=None, verbose_name='events')),
                ('is_active', models.BooleanField(default=True, verbose_name='active')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='added')),
            ],
            options={
                'verbose_name': 'webhook',
                'verbose_name_plural': 'webhooks',
            },
        ),
        migrations.CreateModel(
            name='Embedder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True, verbose_name='name')),
                ('dimension', models.PositiveIntegerField(verbose_name='width')),
                ('is_active', models.BooleanField(default=False, verbose_name='searched')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'verbose_name': 'embedder',
                'verbose_name_plural': 'embedders',
                'constraints': [models.UniqueConstraint(condition=models.Q(('is_active', True)), fields=('is_active',), name='one_active_embedder')],
            },
        ),
        migrations.CreateModel(
            name='RecognisedPage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('content_hash', models.CharField(max_length=64)),
                ('number', models.PositiveIntegerField()),
                ('recipe', models.CharField(max_length=200)),
                ('width', models.FloatField(default=0)),
                ('height', models.FloatField(default=0)),
                ('turned', models.PositiveSmallIntegerField(default=0)),
                ('words', models.JSONField(default=list)),
                ('confidence', models.FloatField(null=True)),
                ('failure', models.CharField(blank=True, max_length=300)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('content_hash', 'number', 'recipe'), name='page_recognised_once')],
            },
        ),
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('lease', models.UUIDField(blank=True, editable=False, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('retry_at', models.DateTimeField(blank=True, null=True, verbose_name='next attempt')),
                ('enqueued_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('status', models.CharField(choices=[('copying', 'being copied'), ('open', 'open'), ('publishing', 'being published'), ('published', 'published'), ('discarded', 'discarded')], default='copying', max_length=12, verbose_name='status')),
                ('copied', models.PositiveIntegerField(default=0, verbose_name='documents copied')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='begun')),
                ('permitted_versions', models.JSONField(default=list, editable=False)),
                ('published_at', models.DateTimeField(blank=True, null=True, verbose_name='published')),
                ('changes', models.JSONField(blank=True, default=dict, verbose_name='changes')),
                ('objections', models.JSONField(blank=True, default=list, verbose_name='objections')),
                ('override', models.TextField(blank=True, verbose_name='reason to publish against objections')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to='retrieval.collection', verbose_name='collection')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='begun by')),
                ('published_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='published by')),
                ('working_copy', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='draft', to='retrieval.collection', verbose_name='working copy')),
            ],
            options={
                'verbose_name': 'draft',
                'verbose_name_plural': 'drafts',
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['published', 'discarded']), _negated=True), fields=('collection',), name='one_open_draft_per_collection'), models.CheckConstraint(condition=models.Q(models.Q(('objections', []), ('override', '')), models.Q(models.Q(('objections', []), _negated=True), models.Q(('override', ''), _negated=True)), _connector='OR'), name='draft_override_gives_its_reason')],
            },
        ),
        migrations.CreateModel(
            name='Lexeme',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('lexeme', models.TextField()),
                ('document_frequency', models.PositiveIntegerField()),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.collection')),
            ],
            options={
                'indexes': [models.Index(models.F('collection'), django.db.models.functions.text.Left('lexeme', 1), django.db.models.functions.text.Length('lexeme'), name='lexeme_beginning_and_length'), models.Index(models.F('collection'), django.contrib.postgres.indexes.OpClass('lexeme', 'text_pattern_ops'), name='lexeme_beginning')],
                'constraints': [models.UniqueConstraint(fields=('collection', 'lexeme'), name='one_row_per_lexeme')],
            },
        ),
        migrations.CreateModel(
            name='SearchProfileVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(verbose_name='version')),
                ('settings', models.JSONField(verbose_name='settings')),
                ('note', models.CharField(blank=True, max_length=500, verbose_name='note')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='made')),
                ('is_published', models.BooleanField(default=False, verbose_name='in force')),
                ('published_at', models.DateTimeField(blank=True, null=True, verbose_name='published')),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='made by')),
                ('profile', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='retrieval.searchprofile', verbose_name='search profile')),
                ('published_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='published by')),
            ],
            options={
                'verbose_name': 'version of a search profile',
                'verbose_name_plural': 'versions of search profiles',
                'ordering': ['profile', '-number'],
                'constraints': [models.UniqueConstraint(fields=('profile', 'number'), name='one_version_per_number'), models.UniqueConstraint(condition=models.Q(('is_published', True)), fields=('is_published',), name='one_published_profile_version')],
            },
        ),
        migrations.CreateModel(
            name='Source',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='Added in front of the names of its documents.', max_length=100, verbose_name='name')),
                ('kind', models.CharField(max_length=20, verbose_name='kind')),
                ('options', models.JSONField(blank=True, default=dict, verbose_name='settings')),
                ('secret', models.TextField(blank=True, editable=False)),
                ('metadata', models.JSONField(blank=True, db_default={}, default=dict, help_text='Given to each of its documents: a JSON object such as {"department": "sales"}.', verbose_name='metadata')),
                ('interval_minutes', models.PositiveIntegerField(default=60, help_text='60 is every hour, 1440 every day; 0: only on request.', verbose_name='minutes between runs')),
                ('is_paused', models.BooleanField(default=False, verbose_name='paused')),
                ('next_run_at', models.DateTimeField(blank=True, null=True, verbose_name='next run')),
                ('cursor', models.JSONField(default=dict, editable=False)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='added')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sources', to='retrieval.collection', verbose_name='collection')),
            ],
            options={
                'verbose_name': 'source',
                'verbose_name_plural': 'sources',
                'ordering': ['name', 'id'],
                'constraints': [models.UniqueConstraint(fields=('collection', 'name'), name='one_source_per_name')],
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('lease', models.UUIDField(blank=True, editable=False, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('retry_at', models.DateTimeField(blank=True, null=True, verbose_name='next attempt')),
                ('enqueued_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('event', models.CharField(max_length=40, verbose_name='event')),
                ('payload', models.JSONField(verbose_name='payload')),
                ('status', models.CharField(choices=[('waiting', 'waiting'), ('running', 'being sent'), ('done', 'delivered'), ('failed', 'failed')], default='waiting', max_length=10, verbose_name='status')),
                ('response_status', models.PositiveSmallIntegerField(blank=True, null=True, verbose_name='response')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='happened')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='ended')),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='retrieval.webhook', verbose_name='webhook')),
            ],
            options={
                'verbose_name': 'webhook delivery',
                'verbose_name_plural': 'webhook deliveries',
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='CollectionStatistics',
            fields=[
                ('collection', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='statistics', serialize=False, to='retrieval.collection')),
                ('chunks', models.PositiveIntegerField(default=0)),
                ('total_length', models.FloatField(default=0)),
                ('reference_length', models.FloatField(default=0)),
                ('weighting', models.CharField(blank=True, max_length=200)),
                ('version', models.PositiveBigIntegerField(default=0)),
            ],
            options={
                'verbose_name_plural': 'collection statistics',
                'constraints': [models.CheckConstraint(condition=models.Q(('total_length__gte', 0)), name='collection_total_length_not_negative')],
            },
        ),
        migrations.CreateModel(
            name='CollectionGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('reader', 'reader: asks it'), ('curator', 'curator: changes its documents'), ('manager', 'manager: changes its settings and its access')], default='reader', max_length=8, verbose_name='role')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='given')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='retrieval.collection', verbose_name='collection')),
                ('group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='collection_grants', to='auth.group', verbose_name='group')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='collection_grants', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'grant',
                'verbose_name_plural': 'grants',
                'ordering': ['collection_id', 'group__name', 'user__username', 'pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('group', None), ('user', None), _connector='XOR'), name='grant_to_a_group_or_a_user', violation_error_message='Choose a group or a user, not both.'), models.UniqueConstraint(condition=models.Q(('group', None), _negated=True), fields=('collection', 'group'), name='one_grant_per_group'), models.UniqueConstraint(condition=models.Q(('user', None), _negated=True), fields=('collection', 'user'), name='one_grant_per_user')],
            },
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('lease', models.UUIDField(blank=True, editable=False, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('retry_at', models.DateTimeField(blank=True, null=True, verbose_name='next attempt')),
                ('enqueued_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('title', models.CharField(blank=True, help_text="Empty: the title in the file.", max_length=500, verbose_name='title')),
                ('extracted_title', models.CharField(blank=True, editable=False, max_length=500)),
                ('source', models.CharField(help_text='File name or path; the same source again is a new version of it.', max_length=1000, verbose_name='source')),
                ('url', models.URLField(blank=True, help_text='Where readers find the original.', max_length=1000, verbose_name='web address')),
                ('file', models.FileField(max_length=200, upload_to=retrieval.models.document.upload_path, verbose_name='file')),
                ('media_type', models.CharField(blank=True, max_length=100, verbose_name='media type')),
                ('content_hash', models.CharField(db_index=True, max_length=64, verbose_name='SHA-256 of the file')),
                ('size_bytes', models.PositiveBigIntegerField(default=0, verbose_name='size in bytes')),
                ('language', models.CharField(blank=True, max_length=8, verbose_name='language')),
                ('metadata', models.JSONField(blank=True, default=dict, verbose_name='metadata')),
                ('status', models.CharField(choices=[('pending', 'waiting'), ('processing', 'being read'), ('ready', 'ready'), ('failed', 'failed')], db_index=True, default='pending', max_length=12, verbose_name='status')),
                ('progress_percent', models.PositiveSmallIntegerField(default=0, verbose_name='progress in percent')),
                ('is_slow', models.BooleanField(default=False, editable=False)),
                ('awaits_vectors', models.BooleanField(db_default=False, default=False, editable=False)),
                ('chunk_count', models.PositiveIntegerField(default=0, verbose_name='passages')),
                ('instruction_count', models.PositiveIntegerField(default=0, verbose_name='instructions to a model')),
                ('left_out', models.JSONField(db_default=[], default=list, editable=False)),
                ('review_on', models.DateField(blank=True, help_text='From this day on, the document is marked as due for review.', null=True, verbose_name='review date')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='added')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
                ('ingested_at', models.DateTimeField(blank=True, null=True, verbose_name='last read')),
                ('added_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='added by')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='documents', to='retrieval.collection', verbose_name='collection')),
                ('parent', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='members', to='retrieval.document', verbose_name='came in')),
                ('origin', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='documents', to='retrieval.source', verbose_name='comes from')),
            ],
            options={
                'verbose_name': 'document',
                'verbose_name_plural': 'documents',
                'ordering': ['title', 'source', 'id'],
                'indexes': [models.Index(fields=['file'], name='document_file'), django.contrib.postgres.indexes.GinIndex(fields=['metadata'], name='document_metadata'), models.Index(condition=models.Q(('awaits_vectors', True)), fields=['collection'], name='document_awaits_vectors')],
                'constraints': [models.UniqueConstraint(fields=('collection', 'source'), name='one_document_per_source')],
            },
        ),
        migrations.CreateModel(
            name='Publication',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('published_at', models.DateTimeField(auto_now_add=True, verbose_name='published')),
                ('objections', models.JSONField(blank=True, default=list, verbose_name='objections')),
                ('override', models.TextField(blank=True, verbose_name='reason to publish against objections')),
                ('published_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='published by')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='publications', to='retrieval.searchprofileversion', verbose_name='version')),
            ],
            options={
                'verbose_name': 'publication',
                'verbose_name_plural': 'publications',
                'ordering': ['-pk'],
                'permissions': [('override_gate', 'Can publish against objections')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('objections', []), ('override', '')), models.Q(models.Q(('objections', []), _negated=True), models.Q(('override', ''), _negated=True)), _connector='OR'), name='override_gives_its_reason')],
            },
        ),
        migrations.CreateModel(
            name='SourceItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.TextField()),
                ('key_hash', models.CharField(max_length=64)),
                ('name', models.CharField(blank=True, max_length=1000)),
                ('fingerprint', models.TextField(blank=True)),
                ('validators', models.JSONField(default=dict)),
                ('content_hash', models.CharField(blank=True, max_length=64)),
                ('links', models.JSONField(default=list)),
                ('seen_by_run', models.BigIntegerField(null=True)),
                ('last_seen_at', models.DateTimeField(null=True)),
                ('outcome', models.CharField(blank=True, choices=[('added', 'added'), ('changed', 'changed'), ('unchanged', 'unchanged'), ('failed', 'failed'), ('passed', 'not a document')], max_length=10)),
                ('error', models.TextField(blank=True)),
                ('is_rejected', models.BooleanField(default=False)),
                ('is_held', models.BooleanField(default=False)),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='retrieval.source')),
            ],
            options={
                'indexes': [models.Index(fields=['source', 'seen_by_run'], name='source_item_seen')],
                'constraints': [models.UniqueConstraint(fields=('source', 'key_hash'), name='one_item_per_key')],
            },
        ),
        migrations.CreateModel(
            name='SourceRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('lease', models.UUIDField(blank=True, editable=False, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('retry_at', models.DateTimeField(blank=True, null=True, verbose_name='next attempt')),
                ('enqueued_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('status', models.CharField(choices=[('waiting', 'waiting'), ('running', 'running'), ('done', 'done'), ('failed', 'failed'), ('stopped', 'stopped')], default='waiting', max_length=10, verbose_name='status')),
                ('is_preview', models.BooleanField(default=False, verbose_name='preview')),
                ('may_remove', models.BooleanField(default=False, editable=False)),
                ('added', models.PositiveIntegerField(default=0, verbose_name='added')),
                ('changed', models.PositiveIntegerField(default=0, verbose_name='changed')),
                ('unchanged', models.PositiveIntegerField(default=0, verbose_name='unchanged')),
                ('removed', models.PositiveIntegerField(default=0, verbose_name='removed')),
                ('failed', models.PositiveIntegerField(default=0, verbose_name='failed')),
                ('kept_back', models.PositiveIntegerField(default=0, verbose_name='removals that wait')),
                ('details', models.JSONField(default=dict, editable=False)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='asked for')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='ended')),
                ('seconds', models.FloatField(default=0, verbose_name='seconds')),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='retrieval.source', verbose_name='source')),
            ],
            options={
                'verbose_name': 'run of a source',
                'verbose_name_plural': 'runs of sources',
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['waiting', 'running'])), fields=('source',), name='one_active_run_per_source')],
            },
        ),
        migrations.CreateModel(
            name='Chunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveIntegerField(help_text='Place in the document, from 0.', verbose_name='number')),
                ('start', models.PositiveIntegerField()),
                ('end', models.PositiveIntegerField()),
                ('page', models.PositiveIntegerField(blank=True, null=True, verbose_name='page')),
                ('heading_path', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, size=None, verbose_name='headings')),
                ('content', models.TextField(verbose_name='text')),
                ('content_hash', models.CharField(max_length=64)),
                ('token_count', models.PositiveIntegerField(verbose_name='tokens')),
                ('canonical_questions', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, size=None, verbose_name='questions it answers')),
                ('questions_edited', models.BooleanField(db_default=False, default=False, help_text='Kept when the document is read again, as long as the passage is the same.', verbose_name='questions written by hand')),
                ('blocks', models.JSONField(db_default=[], default=list)),
                ('search_vector', django.contrib.postgres.search.SearchVectorField()),
                ('bm25', pgvector.django.sparsevec.SparseVectorField(dimensions=268435456)),
                ('length', models.FloatField(help_text='Length in lexemes, fields weighted by their boosts.')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='retrieval.collection', verbose_name='collection')),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='retrieval.document', verbose_name='document')),
            ],
            options={
                'verbose_name': 'passage',
                'verbose_name_plural': 'passages',
                'ordering': ['document_id', 'ordinal'],
                'indexes': [django.contrib.postgres.indexes.GinIndex(fields=['search_vector'], name='chunk_search_vector'), models.Index(condition=models.Q(('questions_edited', True)), fields=['collection'], name='chunk_questions_edited')],
                'constraints': [models.UniqueConstraint(deferrable=django.db.models.constraints.Deferrable['DEFERRED'], fields=('document', 'ordinal'), name='one_chunk_per_place')],
            },
        ),
        migrations.CreateModel(
            name='DocumentText',
            fields=[
                ('document', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='text', serialize=False, to='retrieval.document')),
                ('content_hash', models.CharField(max_length=64)),
                ('recipe', models.CharField(max_length=64)),
                ('text', models.TextField()),
                ('pages', models.JSONField(default=list)),
                ('sections', models.JSONField(default=list)),
                ('recognised', models.JSONField(default=list)),
                ('instructions', models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name='Table',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveIntegerField()),
                ('start', models.PositiveIntegerField()),
                ('end', models.PositiveIntegerField()),
                ('caption', models.TextField()),
                ('columns', models.JSONField()),
                ('row_count', models.PositiveIntegerField()),
                ('terms', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tables', to='retrieval.document')),
            ],
            options={
                'ordering': ['document_id', 'ordinal'],
                'indexes': [django.contrib.postgres.indexes.GinIndex(fields=['terms'], name='table_terms')],
                'constraints': [models.UniqueConstraint(fields=('document', 'ordinal'), name='one_table_per_place')],
            },
        ),
        migrations.CreateModel(
            name='ChunkEmbedding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('vector', pgvector.django.halfvec.HalfVectorField()),
                ('chunk', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='embeddings', to='retrieval.chunk')),
                ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.collection')),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.document')),
                ('embedder', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='embeddings', to='retrieval.embedder')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('chunk', 'embedder'), name='one_vector_per_chunk_and_embedder')],
            },
        ),
        migrations.CreateModel(
            name='TableRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveIntegerField()),
                ('start', models.PositiveIntegerField()),
                ('end', models.PositiveIntegerField()),
                ('values', models.JSONField()),
                ('cells', models.JSONField()),
                ('labels', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('table', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rows', to='retrieval.table')),
            ],
            options={
                'ordering': ['table_id', 'ordinal'],
                'indexes': [django.contrib.postgres.indexes.GinIndex(fields=['labels'], name='table_row_labels')],
                'constraints': [models.UniqueConstraint(fields=('table', 'ordinal'), name='one_table_row_per_place')],
            },
        ),
        migrations.RunSQL(CREATE_BM25_FUNCTIONS, DROP_BM25_FUNCTIONS),
        migrations.RunSQL(TUNE_TABLES, migrations.RunSQL.noop),
        migrations.RunSQL(CREATE_VERSION_TRIGGER, DROP_VERSION_TRIGGER),
    ]
