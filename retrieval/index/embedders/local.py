"""An embedder of one's own choice: a folder in the form of sentence-transformers, or a name on the hub."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval.exceptions import ImproperEmbedder
from retrieval.index.embedders import hub
from retrieval.index.embedders.architectures import ARCHITECTURES
from retrieval.index.embedders.model_cache import remembered_digest
from retrieval.index.embedders.onnx import GRAPH_VERSION, SentenceEmbedder
from retrieval.index.embedders.sentence_model import DESCRIPTIONS, Prompts, SentenceModel, read_sentence_model
from retrieval.index.embedders.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from retrieval.index.embedders.graph import Precision

SHORTEST_INPUT = 16
"""Tokens that must be left for a text, beside the prompt."""


class LocalEmbedder(SentenceEmbedder):
    """``model`` is a folder, or a name on the Hugging Face hub that is fetched into ``cache_dir`` once.

    ``query_prompt`` and ``document_prompt`` stand before what is embedded; None takes what the model names. An export
    to ONNX is as precise as it was exported. The name tells what decides the vectors: a hash of the files, the
    precision, and the prompts where there are any.

    Raises: ImproperEmbedder when the model cannot be had or cannot be run.
    """

    def __init__(
        self,
        model: str,
        cache_dir: Path,
        precision: Precision = "int8",
        threads: int = 2,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
    ) -> None:
        super().__init__(precision, threads)
        folder = Path(model).expanduser()
        if not folder.is_dir():
            folder = _fetched(model, cache_dir)
        try:
            self._read = read_sentence_model(folder)
            read = self._read
            settings = (read.pooling, len(read.steps), read.max_tokens, read.lowercase)
            digest = remembered_digest(read.files(), settings, read.digest, cache_dir)
        except KeyError as error:
            raise ImproperEmbedder(f"The embedding model {model} cannot be used: it does not say {error}.") from error
        except (ValueError, TypeError, AttributeError, OSError) as error:
            raise ImproperEmbedder(f"The embedding model {model} cannot be used: {error}.") from error
        named = self._read.prompts
        self.prompts = Prompts(
            query=named.query if query_prompt is None else _spaced(query_prompt),
            document=named.document if document_prompt is None else _spaced(document_prompt),
        )
        self.dimension = self._read.dimension
        # A character is a token at most.
        self.max_tokens = self._read.max_tokens - len(self.prompts.document)
        if self.max_tokens < SHORTEST_INPUT:
            raise ImproperEmbedder(
                f"The embedding model {model} reads {self._read.max_tokens} tokens at once, and its prompt takes "
                "nearly all of them."
            )
        label = re.sub(r"[^\w.-]", "-", model.rstrip("/").rpartition("/")[2])[:80]
        precise = "onnx" if self._read.export else precision
        self.name = f"{label}/{precise}/{digest[:12]}"
        if self.prompts != Prompts():
            self.name += f"/{hashlib.sha256(repr(self.prompts).encode()).hexdigest()[:8]}"
        self.graph_path = Path(cache_dir) / f"{label}-{digest[:12]}-{precision}-v{GRAPH_VERSION}.onnx"

    def model(self) -> SentenceModel:
        return self._read

    def load_tokenizer(self) -> Tokenizer:
        try:
            return load_tokenizer(self._read.folder)
        except (ValueError, OSError) as error:
            raise ImproperEmbedder(f"The embedding model in {self._read.folder} cannot be used: {error}.") from error


def _fetched(model: str, cache_dir: Path) -> Path:
    if model.startswith(("/", ".", "~")):
        raise ImproperEmbedder(f"There is no folder {model} with an embedding model.")
    try:
        return hub.fetch(model, cache_dir, DESCRIPTIONS, ARCHITECTURES, kind="embedding model")
    except (hub.UnknownModel, hub.HubUnreachable) as error:
        raise ImproperEmbedder(str(error)) from error


def _spaced(prompt: str) -> str:
    """As it stands before a text: a setting loses the blank at its end."""
    return f"{prompt.rstrip()} " if prompt.strip() else ""
