from django.urls import path

from chat import views
from chat.debugging.debug_views import scores
from chat.pages import widget

app_name = "chat"

urlpatterns = [
    path("", views.home, name="home"),
    path("ask/", views.ask, name="ask"),
    path("c/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path("c/<uuid:conversation_id>/delete/", views.delete_conversation, name="delete_conversation"),
    path("c/<uuid:conversation_id>/rename/", views.rename_conversation, name="rename_conversation"),
    path("c/<uuid:conversation_id>/entry/", views.conversation_entry, name="conversation_entry"),
    path("c/<uuid:conversation_id>/share/", views.share, name="share"),
    path("c/<uuid:conversation_id>/stop-sharing/", views.stop_sharing, name="stop_sharing"),
    path("conversations/", views.conversations, name="conversations"),
    path("s/<uuid:token>/", views.shared, name="shared"),
    path("widget.js", widget.script, name="widget_script"),
    path("widget/", widget.frame, name="widget"),
    path("widget/answers/<uuid:answer_id>/", widget.answer, name="widget_answer"),
    path("answers/<uuid:answer_id>/stream/", views.stream, name="stream"),
    path("answers/<uuid:answer_id>/stop/", views.stop, name="stop"),
    path("answers/<uuid:answer_id>/feedback/", views.feedback, name="feedback"),
    path("answers/<uuid:answer_id>/debug/", views.debug, name="debug"),
    path("answers/<uuid:answer_id>/debug/scores/", scores, name="debug_scores"),
]
