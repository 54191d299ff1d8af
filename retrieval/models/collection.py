from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class TextSearchConfiguration(models.TextChoices):
    """PostgreSQL's stock configurations that the site offers; `simple` splits and lower-cases, no more."""

    SIMPLE = "simple", _("any language, words as they are")
    ENGLISH = "english", _("English")
    DUTCH = "dutch", _("Dutch")
    GERMAN = "german", _("German")
    FRENCH = "french", _("French")
    SPANISH = "spanish", _("Spanish")
    ITALIAN = "italian", _("Italian")
    PORTUGUESE = "portuguese", _("Portuguese")
    DANISH = "danish", _("Danish")
    SWEDISH = "swedish", _("Swedish")
    NORWEGIAN = "norwegian", _("Norwegian")
    FINNISH = "finnish", _("Finnish")


class CollectionQuerySet(models.QuerySet["Collection"]):
    def readable_by(self, user: object) -> CollectionQuerySet:
        """Collections whose passages may be shown to ``user``: public ones, and all of them to staff."""
        if getattr(user, "is_staff", False) and getattr(user, "is_active", False):
            return self
        return self.filter(is_public=True)

    def in_service(self) -> CollectionQuerySet:
        """Those that readers meet, and none that is a draft's working copy."""
        return self.filter(draft=None)


class Collection(models.Model):
    """Documents that are searched together and share a language."""

    slug = models.SlugField(_("short name"), unique=True, help_text=_("Used in addresses and commands."))
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    text_search_configuration = models.CharField(
        _("language of the text"),
        max_length=20,
        choices=TextSearchConfiguration,
        default=TextSearchConfiguration.ENGLISH,
        help_text=_("How words are reduced for keyword search. Changing it re-indexes the collection's documents."),
    )
    is_public = models.BooleanField(_("public"), default=True, help_text=_("Visitors who are not staff may ask it."))
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = CollectionQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("collection")
        verbose_name_plural = _("collections")

    def __str__(self) -> str:
        return self.name


class CollectionStatistics(models.Model):
    """What BM25 needs to know of a collection as a whole; kept up to date in the transaction that changes its chunks.

    ``reference_length`` is the mean chunk length that the stored term weights were computed with. It follows
    ``total_length / chunks`` at a distance, because each change of it rewrites every weight of the collection.
    ``version`` grows with every change of the collection's chunks: what was derived from them is stale when it differs.
    """

    collection = models.OneToOneField(Collection, models.CASCADE, primary_key=True, related_name="statistics")
    chunks = models.PositiveIntegerField(default=0)
    total_length = models.FloatField(default=0)
    reference_length = models.FloatField(default=0)
    # k1, b and the field boosts that the stored term weights were computed with.
    weighting = models.CharField(max_length=200, blank=True)
    version = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "collection statistics"
        constraints = [
            models.CheckConstraint(condition=Q(total_length__gte=0), name="collection_total_length_not_negative")
        ]

    def __str__(self) -> str:
        return f"{self.collection_id}: {self.chunks} chunks"

    @property
    def mean_length(self) -> float:
        """Mean length of a chunk in lexemes; 0 for an empty collection."""
        return self.total_length / self.chunks if self.chunks else 0.0
