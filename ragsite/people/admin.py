"""What an administrator does with a person's data, on the list of users."""

from __future__ import annotations

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from ragsite.audit.recording import record
from ragsite.people.erasure import LastAdministrator, erase_person, preview_erasure
from ragsite.people.export import person_as_json


class PersonActions(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Export and erasure, for superusers: they reach what the person asked."""

    actions = ["export_person", "erase_person"]

    def has_superuser_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    @admin.action(description=_("Export the person's data (JSON)"), permissions=["superuser"])
    def export_person(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        user = self._one(request, users)
        if user is None:
            return None
        record("person.exported", user)
        response = JsonResponse(person_as_json(user), json_dumps_params={"indent": 2, "ensure_ascii": False})
        response["Content-Disposition"] = f'attachment; filename="person-{user.pk}.json"'
        return response

    @admin.action(description=_("Erase the person and their data"), permissions=["superuser"])
    def erase_person(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        user = self._one(request, users)
        if user is None:
            return None
        if user.pk == request.user.pk:
            self.message_user(request, _t("Erase your own account on its own page."), messages.ERROR)
            return None
        if not request.POST.get("confirmed"):
            context = {
                **self.admin_site.each_context(request),
                "title": _t("Erase the person and their data"),
                "opts": self.opts,
                "person": user,
                "preview": preview_erasure(user),
            }
            return TemplateResponse(request, "admin/ragsite/erase_person.html", context)
        try:
            erase_person(user)
        except LastAdministrator as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(request, _t("The person is erased."))
        return None

    def _one(self, request: HttpRequest, users: QuerySet[User]) -> User | None:
        chosen = list(users[:2])
        if len(chosen) == 1:
            return chosen[0]
        self.message_user(request, _t("Choose one person."), messages.ERROR)
        return None
