from django.urls import path

from retrieval.viewer import views

app_name = "retrieval"

urlpatterns = [
    path("<int:document_id>/", views.document, name="document"),
    path("<int:document_id>/original/", views.original, name="original"),
    path("<int:document_id>/pdf/", views.pdf, name="pdf"),
    path("<int:document_id>/pages/<int:number>/", views.page_picture, name="page_picture"),
]
