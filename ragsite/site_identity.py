from __future__ import annotations

import io
import logging
from typing import ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db import DatabaseError, models
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe
from PIL import Image

from ragsite.models.identity import SiteIdentity

logger = logging.getLogger(__name__)

LARGEST_LOGO = 200 * 1024
_WIDEST_LOGO = 2000
_PICTURES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
_SVG = "image/svg+xml"
_YEAR = 31536000


def add_site_identity(request: HttpRequest) -> dict[str, object]:
    return {"identity": SimpleLazyObject(load_identity)}


def load_identity() -> SiteIdentity:
    """Return the site's name and logo, or the defaults if the database fails: error pages need them too."""
    try:
        return SiteIdentity.objects.first() or SiteIdentity()
    except DatabaseError as error:
        logger.warning("The site's name could not be read, and pages show the default: %s", error)
        return SiteIdentity()


@require_safe
def logo(request: HttpRequest, version: str) -> HttpResponse:
    """Return the logo; 404 if the address has the version of an older logo."""
    identity = load_identity()
    if not identity.logo or version != identity.logo_version:
        raise Http404
    response = HttpResponse(bytes(identity.logo), content_type=identity.logo_type)
    response["Cache-Control"] = f"public, max-age={_YEAR}, immutable"
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def detect_logo_type(data: bytes) -> str:
    """Return the media type of a picture for the logo. Raises: ValidationError if the type is not allowed."""
    if len(data) > LARGEST_LOGO:
        raise ValidationError(_t("The logo is larger than 200 KB. Save it smaller, or as SVG."))
    if data.lstrip()[:5].lower() in (b"<?xml", b"<svg ") and b"<svg" in data and b"<!ENTITY" not in data:
        return _SVG
    try:
        with Image.open(io.BytesIO(data), formats=list(_PICTURES)) as picture:
            picture.verify()
            kind, size = picture.format, picture.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise ValidationError(_t("The logo must be a picture: SVG, PNG, JPEG or WebP.")) from None
    if max(size) > _WIDEST_LOGO:
        raise ValidationError(_t("The logo is wider or higher than 2,000 pixels."))
    return _PICTURES[str(kind)]


class SiteIdentityForm(forms.ModelForm):  # type: ignore[type-arg]
    picture = forms.FileField(
        label=_("logo"),
        required=False,
        widget=forms.FileInput(attrs={"accept": f"{_SVG},{','.join(_PICTURES.values())}"}),
        help_text=_("SVG, PNG, JPEG or WebP, at most 200 KB. It replaces the picture beside the name."),
    )
    without_logo = forms.BooleanField(label=_("Remove the logo"), required=False)

    class Meta:
        model = SiteIdentity
        fields: ClassVar[list[str]] = ["name", "line", "contact"]

    def clean_name(self) -> str:
        return " ".join(str(self.cleaned_data["name"]).split())

    def clean_picture(self) -> UploadedFile[bytes] | None:
        uploaded: UploadedFile[bytes] | None = self.cleaned_data["picture"]
        if uploaded:
            self.instance.logo = uploaded.read(LARGEST_LOGO + 1)
            self.instance.logo_type = detect_logo_type(self.instance.logo)
        return uploaded

    def save(self, commit: bool = True) -> SiteIdentity:
        identity: SiteIdentity = self.instance
        identity.pk = 1
        if self.cleaned_data["without_logo"] and not self.cleaned_data["picture"]:
            identity.logo, identity.logo_type = None, ""
        return super().save(commit)  # type: ignore[no-any-return]


@admin.register(SiteIdentity)
class SiteIdentityAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = SiteIdentityForm
    fields = ["name", "line", "contact", "picture", "shown_logo", "without_logo"]
    readonly_fields = ["shown_logo"]

    @admin.display(description=_("present logo"))
    def shown_logo(self, identity: SiteIdentity) -> SafeString | str:
        if not identity.logo:
            return _t("none")
        return format_html('<img src="{}" alt="" class="shown-logo">', reverse("logo", args=[identity.logo_version]))

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[SiteIdentity]:
        return super().get_queryset(request).filter(pk=1)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:
        """Open the form of the only row, which is created if it does not exist. Raises: PermissionDenied."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        if self.has_change_permission(request):
            SiteIdentity.objects.get_or_create(pk=1)
        return redirect("admin:ragsite_siteidentity_change", 1)

    def response_change(self, request: HttpRequest, obj: SiteIdentity) -> HttpResponse:
        super().response_change(request, obj)
        return redirect("admin:ragsite_siteidentity_change", 1)
