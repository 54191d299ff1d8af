from retrieval.admin import collections, documents, drafts, index_checks, passages, profiles  # noqa: F401  (they register themselves)
