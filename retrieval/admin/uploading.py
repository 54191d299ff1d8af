"""The page to upload documents: a form, or with JavaScript a JSON request for each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.admin import helpers
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.text import slugify
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from core.admin_base import PageAdmin, is_asked_by_script, redirect_to
from core.users import get_account
from retrieval.admin.document_forms import UploadForm, build_drop_zone_context
from retrieval.documents import submission
from retrieval.documents.drafts.editing import find_draft
from retrieval.documents.submission import Submission, submit_upload
from retrieval.exceptions import DocumentRejected
from retrieval.models import Collection, Document
from retrieval.models.collection import Visibility
from retrieval.rights.staff import grant_management
from retrieval.sources.web_page import find_only_address, submit_page

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise


@dataclass(frozen=True, slots=True)
class _Outcome:
    document: Document | None
    is_new: bool
    sentence: str


def _read_return_address(request: HttpRequest, data: Mapping[str, str]) -> str:
    address = data.get("next", "")
    is_own = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return address if is_own else ""


def _list_fieldsets(form: UploadForm) -> list[tuple[StrPromise | None, dict[str, Any]]]:
    place = [name for name in ("collection", "new_collection") if name in form.fields]
    return [
        (None, {"fields": place}),
        (_("A text, or the page at a web address"), {"fields": ["text", "text_name"]}),
        (_("For all of them"), {"fields": ["language", "metadata"], "classes": ["collapse"]}),
    ]


class UploadingAdmin(PageAdmin):
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            form = UploadForm(request.POST, request.FILES, user=request.user)
            if form.is_valid():
                if name := form.cleaned_data.get("new_collection"):
                    form.cleaned_data["collection"] = self._create_managed_collection(request, name)
                outcomes = self._submit_files(request, form)
                if is_asked_by_script(request):
                    return self._build_json_answer(form.cleaned_data["collection"], outcomes)
                if name:
                    self.tell_done(request, _t("The collection %s was made.") % name)
                self._show_messages(request, outcomes)
                if back := _read_return_address(request, request.POST):
                    return redirect(back)
                draft = find_draft(form.cleaned_data["collection"])
                if draft is not None and request.user.has_perm("retrieval.view_draft"):
                    return redirect_to(draft)
                return redirect_to(Document)
            if is_asked_by_script(request):
                said = " ".join(str(error) for errors in form.errors.values() for error in errors)
                return JsonResponse({"sentence": said}, status=400)
        else:
            form = UploadForm(initial={"collection": request.GET.get("collection")}, user=request.user)
        context = {
            "adminform": helpers.AdminForm(form, _list_fieldsets(form), {}),  # type: ignore[arg-type]  # any form does
            "errors": helpers.AdminErrorList(form, []),  # type: ignore[arg-type]
            "media": self.media + form.media,
            "add": True,
            "back": _read_return_address(request, request.POST or request.GET),
            **build_drop_zone_context(),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name
        return self.render_page(request, "document/upload", _t("Add documents"), context)

    def _create_managed_collection(self, request: HttpRequest, name: str) -> Collection:
        wanted = slugify(name)[:40] or "collection"
        taken = set(Collection.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
        free = next(slug for slug in chain([wanted], (f"{wanted}-{n}" for n in count(2))) if slug not in taken)
        with transaction.atomic():
            collection = Collection.objects.create(name=name, slug=free, visibility=Visibility.GRANTED)
            grant_management(collection, get_account(request))
            self.log_addition(request, collection, [{"added": {}}])
        return collection

    def _submit_files(self, request: HttpRequest, form: UploadForm) -> list[_Outcome]:
        files: list[tuple[str, UploadedFile[Any]]] = [(file.name or "", file) for file in form.cleaned_data["file"]]
        if len(files) == 1 and form.cleaned_data["source"]:
            files = [(form.cleaned_data["source"], files[0][1])]
        text, title = form.cleaned_data["text"], form.cleaned_data["text_name"]
        address = find_only_address(text)
        if text and not address:
            name = title or _t("Pasted text")
            files.append((f"{name}.md", SimpleUploadedFile("text.md", text.encode(), "text/markdown")))
        outcomes = []
        seen: set[str] = set()
        for source, file in files:
            if source in seen:
                said = _t("%s was sent twice: give the files different names.") % source
                outcomes.append(_Outcome(None, is_new=False, sentence=_t("Not added: %s") % said))
                continue
            seen.add(source)
            outcomes.append(self._submit_one(request, form, partial(submit_upload, upload=file, source=source)))
        if address:
            outcomes.append(self._submit_one(request, form, partial(submit_page, address=address, title=title)))
        return outcomes

    def _submit_one(self, request: HttpRequest, form: UploadForm, submit: Callable[..., Submission]) -> _Outcome:
        try:
            stored = submit(
                form.cleaned_data["collection"],
                language=form.cleaned_data["language"],
                metadata=form.cleaned_data["metadata"],
                may_replace=self.has_change_permission(request),
                known=Document.objects.readable_by(request.user),
            )
        except DocumentRejected as error:
            return _Outcome(None, is_new=False, sentence=_t("Not added: %s") % error)
        if not stored.changed:
            return _Outcome(stored.document, is_new=False, sentence=_t("It has not changed since it was read."))
        submission.set_added_by(stored, request.user)
        self.log_addition(request, stored.document, [{"added": {}}])
        return _Outcome(stored.document, is_new=True, sentence="")

    def _build_json_answer(self, collection: Collection, outcomes: list[_Outcome]) -> JsonResponse:
        files = [
            {
                "added": outcome.document is not None,
                "sentence": outcome.sentence,
                "badge": self.state(outcome.document) if outcome.document else "",  # type: ignore[attr-defined]
            }
            for outcome in outcomes
        ]
        return JsonResponse({"collection": {"pk": collection.pk, "name": collection.name}, "files": files})

    def _show_messages(self, request: HttpRequest, outcomes: list[_Outcome]) -> None:
        for outcome in outcomes:
            if outcome.document is None:
                # Each file gets its own message. The admin capitalises the first letter of a message, and one message
                # for all files could begin with the name of a file.
                self.message_user(request, outcome.sentence, messages.ERROR)
        if accepted := sum(outcome.is_new for outcome in outcomes):
            message = ngettext("%d document will be read now.", "%d documents will be read now.", accepted)
            self.message_user(request, message % accepted, messages.SUCCESS)
        if unchanged := sum(outcome.document is not None and not outcome.is_new for outcome in outcomes):
            message = ngettext(
                "%d file has not changed since it was read.",
                "%d files have not changed since they were read.",
                unchanged,
            )
            self.message_user(request, message % unchanged, messages.INFO)
