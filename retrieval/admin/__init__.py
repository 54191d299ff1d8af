# They register themselves.
from retrieval.admin import collections, drafts, index_checks, sources, webhooks  # noqa: F401
from retrieval.admin.documents import document_admin, passages  # noqa: F401
from retrieval.admin.profiles import profile_admin  # noqa: F401
