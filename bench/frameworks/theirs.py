"""Other frameworks' hybrid retrievers over passages and vectors that are handed to them.

Run by an environment of its own, which has them and nothing of this site: see `bench.frameworks.side_by_side`.
A folder goes in (passages.json, vectors.npy, questions.json, question_vectors.npy), one JSON document comes out: for
each framework its milliseconds and its ranked places for each question, best first.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DEPTH = 50
WARM_UP = 3


def langchain(texts: list[str], vectors: Any, vector_of: dict[str, list[float]]) -> Callable[[str], list[int]]:
    """EnsembleRetriever of BM25Retriever and FAISS, equal weights, as its documentation shows it."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_community.vectorstores import FAISS
    from langchain_core.embeddings import Embeddings

    class Known(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise NotImplementedError("The passages' vectors are given.")

        def embed_query(self, text: str) -> list[float]:
            return vector_of[text]

    places = [{"place": place} for place in range(len(texts))]
    words = BM25Retriever.from_texts(texts, metadatas=places, k=DEPTH)
    store = FAISS.from_embeddings(zip(texts, vectors.tolist(), strict=True), Known(), metadatas=places)
    both = EnsembleRetriever(
        retrievers=[words, store.as_retriever(search_kwargs={"k": DEPTH})], weights=[0.5, 0.5], id_key="place"
    )
    return lambda question: [document.metadata["place"] for document in both.invoke(question)]


def llama_index(texts: list[str], vectors: Any, vector_of: dict[str, list[float]]) -> Callable[[str], list[int]]:
    """QueryFusionRetriever of BM25Retriever and the index's own retriever, fused by reciprocal rank."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    class Known(BaseEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return vector_of[query]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return vector_of[query]

        def _get_text_embedding(self, text: str) -> list[float]:
            raise NotImplementedError("The passages' vectors are given.")

    nodes = [
        TextNode(id_=str(place), text=text, embedding=vector)
        for place, (text, vector) in enumerate(zip(texts, vectors.tolist(), strict=True))
    ]
    index = VectorStoreIndex(nodes, embed_model=Known())
    words = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=DEPTH)
    both = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=DEPTH), words],
        similarity_top_k=DEPTH,
        num_queries=1,
        mode="reciprocal_rerank",
        use_async=False,
        llm=MockLLM(),
    )
    return lambda question: [int(found.node.node_id) for found in both.retrieve(question)]


FRAMEWORKS = {"LangChain EnsembleRetriever": langchain, "LlamaIndex QueryFusionRetriever": llama_index}


def main(folder: Path) -> None:
    texts = json.loads((folder / "passages.json").read_text())
    questions = json.loads((folder / "questions.json").read_text())
    vectors = np.load(folder / "vectors.npy")
    vector_of = dict(zip(questions, np.load(folder / "question_vectors.npy").tolist(), strict=True))
    told = {}
    for name, made in FRAMEWORKS.items():
        retrieve = made(texts, vectors, vector_of)
        for question in questions[:WARM_UP]:
            retrieve(question)
        milliseconds, ranked = [], []
        for question in questions:
            started = time.perf_counter()
            ranked.append(retrieve(question))
            milliseconds.append((time.perf_counter() - started) * 1000)
        told[name] = {"milliseconds": milliseconds, "ranked": ranked}
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
