from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.admin_base import ReadOnlyAdmin, SuperuserAdmin
from core.job_queue import enqueue_on_commit
from retrieval.models import Webhook, WebhookDelivery
from retrieval.sources.options import SecretField, WebAddressField
from retrieval.webhooks import new_secret


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    address = WebAddressField(label=_("Address"))
    events = forms.MultipleChoiceField(
        label=_("Events"), choices=Webhook.Event.choices, widget=forms.CheckboxSelectMultiple
    )
    new_secret = SecretField(
        label=_("Secret"),
        help_text=_(
            "Signs each delivery. It is stored encrypted and not shown again. Empty: unchanged; a new webhook, or "
            "one with another server, gets a new secret."
        ),
    )

    class Meta:
        model = Webhook
        fields = ("address", "events", "is_active")


@admin.register(Webhook)
class WebhookAdmin(SuperuserAdmin):
    form = WebhookForm
    list_display = ("address", "events", "is_active", "failures", "paused_until", "created_at")
    actions = ("send_test",)

    def save_model(self, request: HttpRequest, obj: Webhook, form: Any, change: bool) -> None:
        if form.cleaned_data["new_secret"]:
            obj.set_secret(form.cleaned_data["new_secret"])
        super().save_model(request, obj, form, change)
        if not obj.secret:
            obj.set_secret(secret := new_secret())
            obj.save()
            messages.info(request, _t("The secret, which is shown only once: %s") % secret)

    @admin.action(description=_("Send a test event"), permissions=["change"])
    def send_test(self, request: HttpRequest, webhooks: QuerySet[Webhook]) -> None:
        rows = [WebhookDelivery(webhook=webhook, event="test", payload={}) for webhook in webhooks]
        WebhookDelivery.objects.bulk_create(rows)
        enqueue_on_commit(WebhookDelivery, [row.pk for row in rows])
        messages.success(request, _t("Sent. The result is in the list of deliveries."))


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin, SuperuserAdmin):
    list_display = ("created_at", "webhook", "event", "status", "attempts", "response_status", "error")
    list_filter = ("status", "event", "webhook")
    list_select_related = ("webhook",)
    actions = ("send_again",)

    @admin.action(description=_("Send again"))
    def send_again(self, request: HttpRequest, deliveries: QuerySet[WebhookDelivery]) -> None:
        ended = deliveries.exclude(status__in=(WebhookDelivery.WAITING, WebhookDelivery.RUNNING))
        chosen = cast("list[int]", list(ended.values_list("pk", flat=True)))
        WebhookDelivery.objects.filter(pk__in=chosen).update(**WebhookDelivery.get_restart_values(), finished_at=None)
        enqueue_on_commit(WebhookDelivery, chosen)
