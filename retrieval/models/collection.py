from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.key_limits import get_limits
from core.user_types import AnyUser
from core.users import is_active, is_superuser, list_groups


class TextSearchConfiguration(models.TextChoices):
    """A text-search configuration of PostgreSQL that the site offers.

    `simple` only splits and lower-cases words. `auto` uses each document's language.
    """

    AUTO = "auto", _("found from its documents")
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


CONFIGURATION_BY_CODE: dict[str, TextSearchConfiguration] = {
    "en": TextSearchConfiguration.ENGLISH,
    "nl": TextSearchConfiguration.DUTCH,
    "de": TextSearchConfiguration.GERMAN,
    "fr": TextSearchConfiguration.FRENCH,
    "es": TextSearchConfiguration.SPANISH,
    "it": TextSearchConfiguration.ITALIAN,
    "pt": TextSearchConfiguration.PORTUGUESE,
    "da": TextSearchConfiguration.DANISH,
    "sv": TextSearchConfiguration.SWEDISH,
    "no": TextSearchConfiguration.NORWEGIAN,
    "fi": TextSearchConfiguration.FINNISH,
}


class Visibility(models.TextChoices):
    PUBLIC = "public", _("everybody")
    SIGNED_IN = "signed_in", _("everybody who has signed in")
    STAFF = "staff", _("staff")
    GRANTED = "granted", _("only people and groups with a grant")


class CollectionQuerySet(models.QuerySet["Collection"]):
    """Queries for the collections in which a user may do something now. A superuser may do everything."""

    def readable_by(self, user: AnyUser) -> CollectionQuerySet:
        """Return the collections that ``user`` may read. Some documents in them may be closed to ``user``."""
        within_key = self._filter_by_key_limits(user)
        if is_superuser(user):
            return within_key
        seen = [Visibility.PUBLIC]
        if is_active(user):
            seen.append(Visibility.SIGNED_IN)
            if getattr(user, "is_staff", False):
                seen.append(Visibility.STAFF)
        in_service = Q(draft=None) & (Q(visibility__in=seen) | _is_granted(user, *CollectionGrant.Role))
        return within_key.filter(in_service | _build_role_condition(user, *CURATING, path="draft__collection__"))

    def curated_by(self, user: AnyUser) -> CollectionQuerySet:
        return self._filter_open_to(user, *CURATING)

    def granted_to(self, user: AnyUser, *roles: str) -> CollectionQuerySet:
        granted = Q(draft=None) & _is_granted(user, *roles) | _is_granted(user, *roles, path="draft__collection__")
        return self._filter_by_key_limits(user).filter(granted)

    def managed_by(self, user: AnyUser) -> CollectionQuerySet:
        return self._filter_open_to(user, CollectionGrant.Role.MANAGER)

    def _filter_open_to(self, user: AnyUser, *roles: str) -> CollectionQuerySet:
        within_key = self._filter_by_key_limits(user)
        if is_superuser(user):
            return within_key
        open_to = Q(draft=None) & _build_role_condition(user, *roles) | _build_role_condition(
            user, *roles, path="draft__collection__"
        )
        return within_key.filter(open_to)

    def _filter_by_key_limits(self, user: AnyUser) -> CollectionQuerySet:
        limits = get_limits(user)
        return self if limits is None or limits.collections is None else self.filter(pk__in=limits.collections)

    def in_service(self) -> CollectionQuerySet:
        return self.filter(draft=None)


def _is_granted(user: AnyUser, *roles: str, path: str = "") -> Q:
    if not is_active(user):
        return Q(pk__in=[])
    held = CollectionGrant.objects.filter(Q(user=user.pk) | Q(group__in=list_groups(user)), role__in=roles)
    return Q(**{f"{path}pk__in": held.values("collection")})


def _build_role_condition(user: AnyUser, *roles: str, path: str = "") -> Q:
    """Return a condition that ``user`` has one of ``roles`` in a collection.

    ``path`` is the lookup from the queried model to the collection, such as "document__collection__". Staff have all
    roles in a collection, unless its visibility is GRANTED.
    """
    granted = _is_granted(user, *roles, path=path)
    if is_active(user) and getattr(user, "is_staff", False):
        open_to_staff = [visibility for visibility in Visibility if visibility != Visibility.GRANTED]
        return granted | Q(**{f"{path}visibility__in": open_to_staff})
    return granted


class Collection(models.Model):
    slug = models.SlugField(
        _("short name"),
        unique=True,
        help_text=_("Lower-case letters, digits and hyphens, such as staff-rules: used in addresses and commands."),
    )
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    text_search_configuration = models.CharField(
        _("language of the text"),
        max_length=20,
        choices=TextSearchConfiguration,
        default=TextSearchConfiguration.AUTO,
        help_text=_(
            "The search by words finds other forms of a word, such as pump and pumps, in this language. "
            "If you change it, all documents of the collection are read again."
        ),
    )
    visibility = models.CharField(
        _("who may ask it"),
        max_length=10,
        choices=Visibility,
        default=Visibility.PUBLIC,
        help_text=_("In addition to the people and groups listed below."),
    )
    is_searched_by_name = models.BooleanField(
        _("searched only when it is chosen"),
        default=False,
        db_default=False,
        help_text=_("Questions of all documents leave it out."),
    )
    suggested_questions = models.TextField(
        _("suggested questions"),
        blank=True,
        default="",
        db_default="",
        help_text=_("One a line. The first three are offered on the front page; without any, the site looks for some."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = CollectionQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("collection")
        verbose_name_plural = _("collections")

    def __str__(self) -> str:
        return self.name

    @property
    def languages(self) -> str:
        """The names of the languages of the collection's texts, to show to users."""
        if self.text_search_configuration != TextSearchConfiguration.AUTO:
            return self.get_text_search_configuration_display()
        statistics = getattr(self, "statistics", None)
        found = statistics.configurations.split() if statistics is not None else []
        return ", ".join(str(TextSearchConfiguration(each).label) for each in found)


class MarkedFilter(models.Model):
    """A filter that readers of the collection can choose in a search.

    ``field`` is a key of the documents' metadata, or of :data:`BUILT_IN_FILTERS`.
    """

    class Kind(models.TextChoices):
        VALUES = "values", _("choice of values")
        DATES = "dates", _("range of dates")
        NUMBERS = "numbers", _("range of numbers")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="filters", verbose_name=_("collection"))
    field = models.CharField(_("field"), max_length=200)
    label = models.CharField(_("label"), max_length=100, blank=True, help_text=_("Empty: the name of the field."))
    kind = models.CharField(_("kind"), max_length=8, choices=Kind, default=Kind.VALUES)
    position = models.PositiveSmallIntegerField(_("position"), default=0)

    class Meta:
        ordering = ["position", "pk"]
        verbose_name = _("filter")
        verbose_name_plural = _("filters for readers")
        constraints = [models.UniqueConstraint(fields=["collection", "field"], name="one_filter_per_field")]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        if self.label:
            return self.label
        built_in = BUILT_IN_FILTERS.get(self.field)
        return str(built_in[0]) if built_in else self.field.replace("_", " ").capitalize()


# Label and kind of the fields of every document. A metadata key with such a name cannot be a filter.
BUILT_IN_FILTERS = {
    "language": (_("Language"), MarkedFilter.Kind.VALUES),
    "format": (_("Format"), MarkedFilter.Kind.VALUES),
    "added": (_("Added"), MarkedFilter.Kind.DATES),
    "changed": (_("Changed"), MarkedFilter.Kind.DATES),
}


class CollectionGrant(models.Model):
    """A role of a user or group in a collection. Curators also have the rights of readers, and managers all rights."""

    class Role(models.TextChoices):
        READER = "reader", _("reader: asks it")
        CURATOR = "curator", _("curator: changes its documents")
        MANAGER = "manager", _("manager: changes its settings and its access")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="grants", verbose_name=_("collection"))
    group = models.ForeignKey(
        Group, models.CASCADE, null=True, blank=True, related_name="collection_grants", verbose_name=_("group")
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="collection_grants",
        verbose_name=_("user"),
    )
    role = models.CharField(_("role"), max_length=8, choices=Role, default=Role.READER)
    created_at = models.DateTimeField(_("since"), auto_now_add=True)

    class Meta:
        ordering = ["collection_id", "group__name", "user__username", "pk"]
        verbose_name = _("grant")
        verbose_name_plural = _("grants")
        constraints = [
            models.CheckConstraint(
                condition=Q(group=None) ^ Q(user=None),
                name="grant_to_a_group_or_a_user",
                violation_error_message=_("Choose a group or a user, not both."),
            ),
            models.UniqueConstraint(
                fields=["collection", "group"], condition=~Q(group=None), name="one_grant_per_group"
            ),
            models.UniqueConstraint(fields=["collection", "user"], condition=~Q(user=None), name="one_grant_per_user"),
        ]

    def __str__(self) -> str:
        return f"{self.group or self.user}: {self.get_role_display()}"


CURATING = (CollectionGrant.Role.CURATOR, CollectionGrant.Role.MANAGER)


class CollectionStatistics(models.Model):
    """Figures of a collection for keyword search, updated in the transaction that changes its passages.

    ``reference_length`` is the mean passage length with which the stored term weights were computed. ``version``
    changes with the passages.
    """

    collection = models.OneToOneField(Collection, models.CASCADE, primary_key=True, related_name="statistics")
    chunks = models.PositiveIntegerField(default=0)
    total_length = models.FloatField(default=0)
    reference_length = models.FloatField(default=0)
    # The parameters of the stored term weights: k1, b and the field boosts.
    weighting = models.CharField(max_length=200, blank=True)
    configurations = models.CharField(max_length=200, default="", db_default="")
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
        """Mean length of a passage in lexemes; 0 for an empty collection."""
        return self.total_length / self.chunks if self.chunks else 0.0
