from retrieval.admin import collections, documents, passages  # noqa: F401  (they register themselves)
