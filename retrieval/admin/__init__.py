from retrieval.admin import (  # noqa: F401
    collection_admin,
    connector_admin,
    document_admin,
    draft_admin,
    passage_admin,
    profile_admin,
    source_admin,
    webhook_admin,
)
