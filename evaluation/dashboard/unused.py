"""Documents that no answer ever cited."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet

from chat.models import Citation
from evaluation.dashboard.scope import Scope
from retrieval.models import Document


def documents_never_cited(scope: Scope) -> QuerySet[Document]:
    """The documents in service that can be searched and that no answer cites that is still kept, of any time: those
    that had the longest time to be cited first."""
    documents = Document.objects.filter(chunk_count__gt=0, collection__draft=None).exclude(
        Exists(Citation.objects.filter(document=OuterRef("pk")))
    )
    if scope.collection is not None:
        documents = documents.filter(collection=scope.collection)
    return documents.select_related("collection").order_by("created_at", "pk")
