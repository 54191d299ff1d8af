from django.urls import path

from retrieval import views

app_name = "retrieval"

urlpatterns = [
    path("<int:document_id>/", views.document, name="document"),
    path("<int:document_id>/original/", views.original, name="original"),
]
