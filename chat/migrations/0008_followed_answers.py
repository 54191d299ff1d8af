import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0007_versions_of_citations'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='FollowedAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.URLField(max_length=500)),
                ('language', models.CharField(max_length=12)),
                ('checked', models.CharField(blank=True, max_length=32)),
                ('told', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('answer', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='followers', to='chat.answer')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='followed_answers', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ChangeNotice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('lease', models.UUIDField(blank=True, editable=False, null=True)),
                ('heartbeat_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('retry_at', models.DateTimeField(blank=True, null=True, verbose_name='next attempt')),
                ('enqueued_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('changes', models.JSONField(default=list)),
                ('status', models.CharField(choices=[('waiting', 'waiting'), ('running', 'being sent'), ('done', 'delivered'), ('failed', 'failed')], default='waiting', max_length=10, verbose_name='status')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('followed', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='chat.followedanswer')),
            ],
            options={
                'verbose_name': 'notice of a change',
                'verbose_name_plural': 'notices of changes',
                'ordering': ['-pk'],
            },
        ),
        migrations.AddConstraint(
            model_name='followedanswer',
            constraint=models.UniqueConstraint(fields=('user', 'answer'), name='followed_once'),
        ),
    ]
