from retrieval.admin import (  # noqa: F401  (they register themselves)
    collections,
    documents,
    drafts,
    index_checks,
    passages,
    profiles,
)
