from __future__ import annotations

from django.urls import path

from chat.api.views import AnswerView, AskView, FeedbackView

app_name = "chat_api"
urlpatterns = [
    path("ask/", AskView.as_view(), name="ask"),
    path("answers/<uuid:answer_id>/", AnswerView.as_view(), name="answer"),
    path("answers/<uuid:answer_id>/feedback/", FeedbackView.as_view(), name="feedback"),
]
