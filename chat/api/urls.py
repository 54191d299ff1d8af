from __future__ import annotations

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from chat.api.completions import CompletionsView
from chat.api.endpoints import AnswerStreamView, AnswerView, AskView, ConversationViewSet, FeedbackView, StopView
from chat.api.openai import EmbeddingsView, ModelsView, ModelView, NotOfferedView

router = SimpleRouter(use_regex_path=False)
router.register("conversations", ConversationViewSet, basename="conversation")

app_name = "chat_api"
urlpatterns = [
    path("ask/", AskView.as_view(), name="ask"),
    path("answers/<uuid:answer_id>/", AnswerView.as_view(), name="answer"),
    path("answers/<uuid:answer_id>/stream/", AnswerStreamView.as_view(), name="answer_stream"),
    path("answers/<uuid:answer_id>/stop/", StopView.as_view(), name="stop"),
    path("answers/<uuid:answer_id>/feedback/", FeedbackView.as_view(), name="feedback"),
    path("", include(router.urls)),
]
# OpenAI's protocol: without closing slashes, as its clients ask.
openai_urlpatterns = [
    path("chat/completions", CompletionsView.as_view(), name="completions"),
    path("models", ModelsView.as_view(), name="models"),
    path("models/<path:model>", ModelView.as_view(), name="model"),
    path("embeddings", EmbeddingsView.as_view(), name="embeddings"),
    path("<path:rest>", NotOfferedView.as_view(), name="not_offered"),
]
