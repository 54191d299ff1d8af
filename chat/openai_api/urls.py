from __future__ import annotations

from django.urls import path

from chat.openai_api.views import CompletionsView, ModelsView, ModelView, NotOfferedView

app_name = "openai_api"
# Without closing slashes, as the clients ask.
urlpatterns = [
    path("chat/completions", CompletionsView.as_view(), name="completions"),
    path("models", ModelsView.as_view(), name="models"),
    path("models/<path:model>", ModelView.as_view(), name="model"),
    path("<path:rest>", NotOfferedView.as_view(), name="not_offered"),
]
