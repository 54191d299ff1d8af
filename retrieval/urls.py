from django.urls import path

from retrieval.viewer import source_views

app_name = "retrieval"

urlpatterns = [
    path("", source_views.library, name="library"),
    path("<int:document_id>/", source_views.document, name="document"),
    path("<int:document_id>/original/", source_views.download_original, name="original"),
    path("<int:document_id>/pdf/", source_views.pdf, name="pdf"),
    path("<int:document_id>/tables/<int:number>/", source_views.table, name="table"),
    path("<int:document_id>/pages/<int:number>/", source_views.page_picture, name="page_picture"),
]
