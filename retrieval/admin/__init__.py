from retrieval.admin import collections, documents, index_checks, passages, profiles  # noqa: F401  (they register themselves)
