"""The upload page of documents, which works as a form; a script sends each file alone and gets JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.admin import helpers
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _t
from django.utils.translation import ngettext

from core.admin_base import PageAdmin
from retrieval.admin.document_forms import UploadForm
from retrieval.documents import submission
from retrieval.documents.drafts.editing import find_draft
from retrieval.documents.submission import Submission, submit_upload
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document
from retrieval.sources.web_page import address_in, submit_page


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result for one file; a refused one has no ``document``, but a reason in ``sentence``."""

    document: Document | None
    is_new: bool
    sentence: str


def _find_way_back(request: HttpRequest, data: Mapping[str, str]) -> str:
    """Return the page of this site from which the user came to add documents, or ""."""
    address = data.get("next", "")
    is_own = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return address if is_own else ""


class UploadingAdmin(PageAdmin):
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            form = UploadForm(request.POST, request.FILES, user=request.user)
            is_asked_by_script = request.accepts("application/json") and not request.accepts("text/html")
            if form.is_valid():
                outcomes = self._submit(request, form)
                if is_asked_by_script:
                    return self._answer(outcomes)
                self._tell(request, outcomes)
                if back := _find_way_back(request, request.POST):
                    return redirect(back)
                draft = find_draft(form.cleaned_data["collection"])
                if draft is not None and request.user.has_perm("retrieval.view_draft"):
                    return redirect("admin:retrieval_draft_change", draft.pk)
                return redirect("admin:retrieval_document_changelist")
            if is_asked_by_script:
                said = " ".join(str(error) for errors in form.errors.values() for error in errors)
                return JsonResponse({"sentence": said}, status=400)
        else:
            form = UploadForm(initial={"collection": request.GET.get("collection")}, user=request.user)
        context = {
            "adminform": helpers.AdminForm(form, [(None, {"fields": list(form.fields)})], {}),  # type: ignore[arg-type]  # any form does
            "errors": helpers.AdminErrorList(form, []),  # type: ignore[arg-type]
            "media": self.media + form.media,
            "add": True,
            "back": _find_way_back(request, request.POST or request.GET),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name
        return self.render_page(request, "document/upload", _t("Add documents"), context)

    def _submit(self, request: HttpRequest, form: UploadForm) -> list[_Outcome]:
        files: list[tuple[str, UploadedFile[Any]]] = [(file.name or "", file) for file in form.cleaned_data["file"]]
        if len(files) == 1 and form.cleaned_data["source"]:
            files = [(form.cleaned_data["source"], files[0][1])]
        text, title = form.cleaned_data["text"], form.cleaned_data["text_name"]
        address = address_in(text)
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

    def _answer(self, outcomes: list[_Outcome]) -> JsonResponse:
        files = [
            {
                "added": outcome.document is not None,
                "sentence": outcome.sentence,
                "badge": self.state(outcome.document) if outcome.document else "",  # type: ignore[attr-defined]
            }
            for outcome in outcomes
        ]
        return JsonResponse({"files": files})

    def _tell(self, request: HttpRequest, outcomes: list[_Outcome]) -> None:
        for outcome in outcomes:
            if outcome.document is None:
                # The admin capitalises a message's first letter, but a file's name must not change.
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
