from retrieval.models.chunk import (
    Chunk,
    ChunkEmbedding,
    Embedder,
    EmbedderCalibration,
    IndexCheck,
    Lexeme,
    Table,
    TableRow,
)
from retrieval.models.collection import Collection, CollectionGrant, CollectionStatistics, MarkedFilter, Visibility
from retrieval.models.document import Document, DocumentText, RecognisedPage
from retrieval.models.draft import Draft
from retrieval.models.profile import Publication, SearchProfile, SearchProfileVersion
from retrieval.models.pushed import PushedItem
from retrieval.models.reading_state import ReadingState
from retrieval.models.registered_connector import RegisteredConnector
from retrieval.models.request_count import RequestCount
from retrieval.models.source import Source, SourceItem, SourceRun
from retrieval.models.webhook import Webhook, WebhookDelivery

__all__ = [
    "Chunk",
    "ChunkEmbedding",
    "Collection",
    "CollectionGrant",
    "CollectionStatistics",
    "Document",
    "DocumentText",
    "Draft",
    "Embedder",
    "EmbedderCalibration",
    "IndexCheck",
    "Lexeme",
    "MarkedFilter",
    "Publication",
    "PushedItem",
    "ReadingState",
    "RecognisedPage",
    "RegisteredConnector",
    "RequestCount",
    "SearchProfile",
    "SearchProfileVersion",
    "Source",
    "SourceItem",
    "SourceRun",
    "Table",
    "TableRow",
    "Visibility",
    "Webhook",
    "WebhookDelivery",
]
