from __future__ import annotations

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from chat.api.completions import CompletionsView
from chat.api.embeddings import EmbeddingsView
from chat.api.endpoints import AnswerStreamView, AnswerView, AskView, ConversationViewSet, FeedbackView, StopAnswerView
from chat.api.openai import ModelsView, ModelView, UnsupportedPathView

router = SimpleRouter(use_regex_path=False)
router.register("conversations", ConversationViewSet, basename="conversation")

app_name = "chat_api"
urlpatterns = [
    path("ask/", AskView.as_view(), name="ask"),
    path("answers/<uuid:answer_id>/", AnswerView.as_view(), name="answer"),
    path("answers/<uuid:answer_id>/stream/", AnswerStreamView.as_view(), name="answer_stream"),
    path("answers/<uuid:answer_id>/stop/", StopAnswerView.as_view(), name="stop"),
    path("answers/<uuid:answer_id>/feedback/", FeedbackView.as_view(), name="feedback"),
    path("", include(router.urls)),
]
_OPENAI = {
    "chat/completions": (CompletionsView, "completions"),
    "models": (ModelsView, "models"),
    "models/<path:model>": (ModelView, "model"),
    "embeddings": (EmbeddingsView, "embeddings"),
}
openai_urlpatterns = [
    # Some clients add a closing slash.
    *(path(f"{route}/", view.as_view(schema=None), name=name) for route, (view, name) in _OPENAI.items()),
    *(path(route, view.as_view(), name=name) for route, (view, name) in _OPENAI.items()),
    path("<path:rest>", UnsupportedPathView.as_view(), name="not_offered"),
]
