from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import BooleanField, Count, ExpressionWrapper, F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import floatformat
from django.urls import URLPattern, reverse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import localtime
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.answering.extractive import NAME as EXTRACTIVE
from chat.answering.model_trial import run_model_trial
from chat.conversations import rights
from chat.curation.mending import AnswerMendingAdmin
from chat.debugging.answer_filters import ConfidenceFilter, DegradedSearchFilter, DurationFilter, GapFilter
from chat.debugging.follow_up import list_answer_documents
from chat.models import Answer, Citation, Conversation, Feedback, LanguageModel, QuestionBudget
from chat.pages.cards import build_cited_passage
from core.admin_base import NamedValuesFilter, PageAdmin, ReadOnlyAdmin, render_badge
from core.audit_signal import record_event
from core.exceptions import LanguageModelMisconfigured, RagsiteError
from core.language_model.chat_endpoint import ChatEndpoint
from retrieval.admin.curated import CollectionFilter
from retrieval.passage_address import build_passage_url
from retrieval.sources.network import resolve_host
from retrieval.sources.options import SecretField, warn_about_removed_secret


class AuditedViewAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Base class of admin pages that show users' questions and record each view in the audit log."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        opened = super().get_object(request, object_id, from_field)
        answer = getattr(opened, "answer", opened)
        conversation = getattr(answer, "conversation", answer)
        if isinstance(conversation, Conversation) and conversation.owner_id != request.user.pk:
            record_event("conversation.viewed", conversation)
        return opened

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        response: HttpResponse = super().changelist_view(request, extra_context)
        record_event("conversation.listed")
        return response


class ChatAdmin(AuditedViewAdmin, ReadOnlyAdmin):
    """Base class of admin pages on which staff can view and delete rows, but not add or change them."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)


class ReadOnlyInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    template = "admin/chat/read_only_inline.html"
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_add_permission


class CitationInline(ReadOnlyInline):
    model = Citation
    fields = ["marker", "passage", "section", "page", "quote", "show_support"]
    readonly_fields = ["passage", "show_support"]
    verbose_name_plural = _("citations")

    @admin.display(description=_("document"))
    def passage(self, citation: Citation) -> SafeString | str:
        address = build_passage_url(citation.document_id, citation.start, citation.end)
        return (
            format_html('<a href="{}">{}</a>', address, citation.document_title) if address else citation.document_title
        )

    @admin.display(description=_("support"))
    def show_support(self, citation: Citation) -> str:
        return build_cited_passage(citation).support_description or "-"


class FeedbackInline(ReadOnlyInline):
    model = Feedback
    fields = ["helpful", "reason", "comment", "updated_at"]
    readonly_fields = ["updated_at"]


class AnswerList(ChangeList):
    """The admin's list of answers, queried without large columns."""

    def get_queryset(self, *arguments: Any, **options: Any) -> QuerySet[Any]:
        shown = ("question", "created_at", "total_ms", "search_ms", "confidence", "refused", "state", "search_method")
        answers = super().get_queryset(*arguments, **options)
        listed = answers.only(*shown, "degraded", "generator", "status", "collection__name", "feedback__helpful")
        found: QuerySet[Any] = listed.annotate(
            is_gap=ExpressionWrapper(Answer.build_knowledge_gap_condition(), BooleanField())
        )
        return found


@admin.register(Answer)
class AnswerAdmin(AnswerMendingAdmin, ChatAdmin):
    list_display = [
        *("question", "panel_link", "asked_at", "formatted_confidence", "refusal", "gap"),
        *("formatted_total_ms", "formatted_search_ms", "search_method"),
        *("show_failed_retrievers", "generator", "collection", "state", "progress", "rating"),
    ]
    list_filter = [
        "status",
        "refused",
        GapFilter,
        ("total_ms", DurationFilter),
        ("search_ms", DurationFilter),
        ("confidence", ConfidenceFilter),
        "feedback__helpful",
        "feedback__reason",
        ("collection", CollectionFilter),
        DegradedSearchFilter,
        ("search_method", NamedValuesFilter),
        ("generator", NamedValuesFilter),
        "created_at",
    ]
    list_select_related = ["feedback", "collection"]
    list_per_page = 50
    show_full_result_count = False
    search_fields = ["question", "text"]
    ordering = ["-created_at"]
    inlines = [CitationInline, FeedbackInline]
    fieldsets = [
        (None, {"fields": ["question", "progress", "answer_text", "error", "notice"]}),
        (_("Correct it"), {"fields": ["trace_link", "documents"]}),
        (
            _("Origin"),
            {"fields": ["conversation", "generator", "created_at", "completed_at"]},
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Answer]:
        return rights.filter_readable_answers(request.user, super().get_queryset(request))

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return AnswerList

    @admin.display(description=_("status"), ordering="status")
    def progress(self, answer: Answer) -> SafeString:
        return render_badge(answer.status, answer.get_status_display())

    @admin.display(description=_("retrievers that did not answer"))
    def show_failed_retrievers(self, answer: Answer) -> str:
        return ", ".join(answer.degraded)

    @admin.display(description=_("debug panel"))
    def panel_link(self, answer: Answer) -> SafeString:
        return format_html(
            '<a href="{}">{}<span class="visually-hidden">: {}</span></a>',
            reverse("chat:debug", args=[answer.pk]),
            _("Open"),
            answer.question,
        )

    @admin.display(description=_("asked"), ordering="created_at")
    def asked_at(self, answer: Answer) -> str:
        return date_format(localtime(answer.created_at), "SHORT_DATETIME_FORMAT")

    @admin.display(description=_("ms in all"), ordering=F("total_ms").asc(nulls_first=True))
    def formatted_total_ms(self, answer: Answer) -> str:
        return "" if answer.total_ms is None else floatformat(answer.total_ms, "0g")

    @admin.display(description=_("ms of the search"), ordering=F("search_ms").asc(nulls_first=True))
    def formatted_search_ms(self, answer: Answer) -> str:
        return "" if answer.search_ms is None else floatformat(answer.search_ms, "0g")

    @admin.display(description=_("confidence"), ordering=F("confidence").asc(nulls_first=True))
    def formatted_confidence(self, answer: Answer) -> str:
        return "" if answer.confidence is None else floatformat(answer.confidence, 2)

    @admin.display(description=_("no answer in the documents"), ordering="refused")
    def refusal(self, answer: Answer) -> str:
        return render_badge("failed", _("Not answered")) if answer.refused else ""

    @admin.display(description=_("gap"))
    def gap(self, answer: Answer) -> str:
        return render_badge("failed", _("gap")) if getattr(answer, "is_gap", False) else ""

    @admin.display(description=_("helpful"), ordering="feedback__helpful")
    def rating(self, answer: Answer) -> str:
        if not hasattr(answer, "feedback"):
            return ""
        return (
            render_badge("ready", _("Helpful")) if answer.feedback.helpful else render_badge("failed", _("Not helpful"))
        )

    @admin.display(description=_("answer"))
    def answer_text(self, answer: Answer) -> SafeString:
        return format_html('<div class="ragsite-text">{}</div>', answer.text)

    @admin.display(description=_("how it was found"))
    def trace_link(self, answer: Answer) -> SafeString:
        return format_html(
            '<a href="{}">{}</a>', reverse("chat:debug", args=[answer.pk]), _("Why these passages were found")
        )

    @admin.display(description=_("documents it came from"))
    def documents(self, answer: Answer) -> SafeString | str:
        rows = (
            (document.address, document.title, _("cited") if document.cited else _("found, not cited"))
            for document in list_answer_documents([answer])[answer.pk]
        )
        return format_html_join(mark_safe("<br>"), '<a href="{}">{}</a> ({})', rows) or "-"


class AnswerInline(ReadOnlyInline):
    model = Answer
    fields = ["link", "status", "refused", "created_at"]
    readonly_fields = ["link", "created_at"]
    ordering = ["created_at"]

    @admin.display(description=_("question"))
    def link(self, answer: Answer) -> SafeString:
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:chat_answer_change", args=[answer.pk]), answer.question
        )


@admin.register(QuestionBudget)
class QuestionBudgetAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    list_display = ["__str__", "user", "group", "questions_a_day", "tokens_a_day", "cost_a_day"]
    autocomplete_fields = ["user"]


class LanguageModelForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    api_key = SecretField(label=_("API key"))

    class Meta:
        model = LanguageModel
        fields = [
            *("name", "base_url", "model", "api_key", "context_tokens", "price_prompt", "price_completion"),
            *("groups", "is_default", "is_enabled"),
        ]
        widgets = {"groups": forms.CheckboxSelectMultiple}

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if name in (settings.OPENAI_MODEL, EXTRACTIVE):
            raise forms.ValidationError(_t("The site's settings already use this name."))
        return name

    def clean(self) -> dict[str, object]:
        """Refuse a server's address in a private network, unless it is the address in OPENAI_BASE_URL."""
        given = super().clean() or self.cleaned_data
        address = given["base_url"] = str(given.get("base_url", "")).rstrip("/")
        try:
            url = ChatEndpoint(address, given.get("api_key", ""), given.get("model", "")).url
            if url.userinfo:
                raise LanguageModelMisconfigured(_t("The address must not contain a name or a password."))
            if not LanguageModel(base_url=address).is_on_server_of_settings:
                resolve_host(url.host, url.port or (443 if url.scheme == "https" else 80))
        except RagsiteError as error:
            self.add_error(None, str(error))
        return given


@admin.register(LanguageModel)
class LanguageModelAdmin(PageAdmin):
    form = LanguageModelForm
    list_display = ["name", "model", "base_url", "is_default", "is_enabled"]

    def save_model(self, request: HttpRequest, obj: LanguageModel, form: Any, change: bool) -> None:
        if form.cleaned_data["api_key"]:
            obj.api_key = form.cleaned_data["api_key"]
        super().save_model(request, obj, form, change)
        warn_about_removed_secret(request, obj)

    def get_urls(self) -> list[URLPattern]:
        test = self.build_button_path(
            "<int:pk>/test/", self.test_view, "languagemodel_test", "chat.change_languagemodel"
        )
        return [test, *super().get_urls()]

    def test_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        model = get_object_or_404(LanguageModel, pk=pk)
        context = {"model": model, "tried": run_model_trial(model)}
        return self.render_page(request, "languagemodel/tested", _t("Test of %s") % model, context)


@admin.register(Conversation)
class ConversationAdmin(ChatAdmin):
    list_display = ["title", "asker", "collection", "questions", "created_at", "updated_at"]
    list_filter = [("collection", CollectionFilter), "updated_at"]
    list_select_related = ["owner", "collection"]
    list_per_page = 50
    search_fields = ["title", "answers__question"]
    fields = ["title", "asker", "collection", "created_at", "updated_at"]
    inlines = [AnswerInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        conversations = rights.filter_open_conversations(request.user, super().get_queryset(request))
        return conversations.annotate(answers_total=Count("answers", distinct=True))

    @admin.display(description=_("asked by"), ordering="owner")
    def asker(self, conversation: Conversation) -> str:
        return str(conversation.owner or _("a visitor"))

    @admin.display(description=_("questions"), ordering="answers_total")
    def questions(self, conversation: Conversation) -> int:
        return int(getattr(conversation, "answers_total", 0))
