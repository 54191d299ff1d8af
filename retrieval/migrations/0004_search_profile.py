import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0003_index_check"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SearchProfile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "slug",
                    models.SlugField(
                        help_text="Names the profile in explanations, as in “default v3”.",
                        unique=True,
                        verbose_name="short name",
                    ),
                ),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                (
                    "description",
                    models.TextField(
                        blank=True, help_text="What it is for, in a sentence or two.", verbose_name="description"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
            ],
            options={
                "verbose_name": "search profile",
                "verbose_name_plural": "search profiles",
                "ordering": ["name", "id"],
            },
        ),
        migrations.CreateModel(
            name="SearchProfileVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField(verbose_name="version")),
                ("settings", models.JSONField(verbose_name="settings")),
                ("note", models.CharField(blank=True, max_length=500, verbose_name="note")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="made")),
                ("is_published", models.BooleanField(default=False, verbose_name="in force")),
                ("published_at", models.DateTimeField(blank=True, null=True, verbose_name="published")),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="made by",
                    ),
                ),
                (
                    "profile",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="retrieval.searchprofile",
                        verbose_name="search profile",
                    ),
                ),
                (
                    "published_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="published by",
                    ),
                ),
            ],
            options={
                "verbose_name": "version of a search profile",
                "verbose_name_plural": "versions of search profiles",
                "ordering": ["profile", "-number"],
                "constraints": [
                    models.UniqueConstraint(fields=("profile", "number"), name="one_version_per_number"),
                    models.UniqueConstraint(
                        condition=models.Q(("is_published", True)),
                        fields=("is_published",),
                        name="one_published_profile_version",
                    ),
                ],
            },
        ),
    ]
