from retrieval.models.chunk import Chunk
from retrieval.models.collection import Collection, CollectionGrant, CollectionStatistics, Visibility
from retrieval.models.document import Document, DocumentText
from retrieval.models.draft import Draft
from retrieval.models.embedding import ChunkEmbedding, Embedder, EmbedderCalibration
from retrieval.models.index_check import IndexCheck
from retrieval.models.lexeme import Lexeme
from retrieval.models.profile import SearchProfile, SearchProfileVersion
from retrieval.models.publication import Publication
from retrieval.models.recognition import RecognisedPage
from retrieval.models.request_count import RequestCount
from retrieval.models.source import Source, SourceItem, SourceRun
from retrieval.models.table import Table, TableRow
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
    "Publication",
    "RecognisedPage",
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
