from django.urls import path

from chat import views

app_name = "chat"

urlpatterns = [
    path("", views.home, name="home"),
    path("ask/", views.ask, name="ask"),
    path("c/<uuid:conversation_id>/", views.conversation, name="conversation"),
    path("c/<uuid:conversation_id>/delete/", views.delete_conversation, name="delete_conversation"),
    path("answers/<uuid:answer_id>/stream/", views.stream, name="stream"),
    path("answers/<uuid:answer_id>/stop/", views.stop, name="stop"),
    path("answers/<uuid:answer_id>/debug/", views.debug, name="debug"),
]
