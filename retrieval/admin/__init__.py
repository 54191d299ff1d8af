from retrieval.admin import collections, documents, drafts, index_checks, passages, profiles, sources  # noqa: F401  (they register themselves)
