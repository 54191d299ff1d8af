from __future__ import annotations

from django.urls import path

from chat.api.answers import AnswerStreamView, AnswerView, FeedbackView, StopView
from chat.api.ask import AskView
from chat.api.conversations import ConversationsView, ConversationView, ShareView

app_name = "chat_api"
urlpatterns = [
    path("ask/", AskView.as_view(), name="ask"),
    path("answers/<uuid:answer_id>/", AnswerView.as_view(), name="answer"),
    path("answers/<uuid:answer_id>/stream/", AnswerStreamView.as_view(), name="answer_stream"),
    path("answers/<uuid:answer_id>/stop/", StopView.as_view(), name="stop"),
    path("answers/<uuid:answer_id>/feedback/", FeedbackView.as_view(), name="feedback"),
    path("conversations/", ConversationsView.as_view(), name="conversations"),
    path("conversations/<uuid:conversation_id>/", ConversationView.as_view(), name="conversation"),
    path("conversations/<uuid:conversation_id>/share/", ShareView.as_view(), name="share"),
]
