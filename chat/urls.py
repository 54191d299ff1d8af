from django.urls import path

from chat.debugging.panel import show_debug_panel, show_debug_scores
from chat.debugging.ranks_now import show_current_ranks
from chat.pages import widget
from chat.pages.conversation_views import (
    conversations,
    delete_conversation,
    rename_conversation,
    show_conversation_entry,
)
from chat.pages.feedback_views import feedback
from chat.pages.following_views import end_following, follow_own_answer, follow_shared_answer
from chat.pages.page_views import conversation, home
from chat.pages.printing_views import (
    print_own_conversation,
    print_shared,
    save_own_conversation,
    save_shared_conversation,
)
from chat.pages.question_views import ask_question, show_filters, stop_answering, stream
from chat.pages.sharing_views import share, show_shared_conversation, stop_sharing

app_name = "chat"

urlpatterns = [
    path("", home, name="home"),
    path("ask/", ask_question, name="ask"),
    path("filters/", show_filters, name="filters"),
    path("c/<uuid:conversation_id>/", conversation, name="conversation"),
    path("c/<uuid:conversation_id>/delete/", delete_conversation, name="delete_conversation"),
    path("c/<uuid:conversation_id>/rename/", rename_conversation, name="rename_conversation"),
    path("c/<uuid:conversation_id>/entry/", show_conversation_entry, name="conversation_entry"),
    path("c/<uuid:conversation_id>/share/", share, name="share"),
    path("c/<uuid:conversation_id>/stop-sharing/", stop_sharing, name="stop_sharing"),
    path("c/<uuid:conversation_id>/print/", print_own_conversation, name="print"),
    path("c/<uuid:conversation_id>/save/", save_own_conversation, name="save"),
    path("conversations/", conversations, name="conversations"),
    path("s/<uuid:token>/", show_shared_conversation, name="shared"),
    path("s/<uuid:token>/follow/<uuid:turn_id>/", follow_shared_answer, name="follow_shared"),
    path("s/<uuid:token>/print/", print_shared, name="print_shared"),
    path("s/<uuid:token>/save/", save_shared_conversation, name="save_shared"),
    path("widget.js", widget.script, name="widget_script"),
    path("widget/", widget.show_widget, name="widget"),
    path("widget/answers/<uuid:answer_id>/", widget.show_widget_answer, name="widget_answer"),
    path("answers/<uuid:answer_id>/stream/", stream, name="stream"),
    path("answers/<uuid:answer_id>/stop/", stop_answering, name="stop"),
    path("answers/<uuid:answer_id>/feedback/", feedback, name="feedback"),
    path("answers/<uuid:answer_id>/follow/", follow_own_answer, name="follow"),
    path("followed/<int:followed_id>/end/", end_following, name="end_following"),
    path("answers/<uuid:answer_id>/debug/", show_debug_panel, name="debug"),
    path("answers/<uuid:answer_id>/debug/scores/", show_debug_scores, name="debug_scores"),
    path("answers/<uuid:answer_id>/debug/now/", show_current_ranks, name="debug_now"),
]
