"""Search with libraries, as their documentation recommends for hybrid search, to compare them with the site.

    python -m bench.beside.peers NAME

It reads one JSON object from standard input (``documents``: texts by
name, ``questions``, ``site``, ``model``). For each question it writes the three best passages, and the milliseconds of
the search, as a JSON list to standard output. Vectors come from the site's ``/v1/embeddings``, with the embedder's
prompts. Passages have about 350 tokens, as on the site, because the site's embedder reads at most 512;
LlamaIndex's default is 1,024.
"""

# mypy: disable-error-code="import-not-found, misc, no-untyped-call, attr-defined, call-arg, arg-type"

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence

TOP = 3
TOKENS, OVERLAP_TOKENS = 350, 50
CHARACTERS, OVERLAP_CHARACTERS = 1_400, 200
WORDS, OVERLAP_WORDS = 250, 35
BATCH = 64
TOO_LONG, SHORTEST = 400, 100

Search = Callable[[str], Sequence[str]]


class SiteEmbedder:
    def __init__(self, site: str, model: str) -> None:
        self._address, self._model = f"{site.rstrip('/')}/v1/embeddings", model

    def embed(self, texts: Sequence[str], kind: str) -> list[list[float]]:
        """Return the unit vectors of passages or queries from the site's embedder.

        If a text is too long for it, the text's end is cut off.
        """
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            batch = list(texts[start : start + BATCH])
            try:
                vectors += self._post(batch, kind)
            except urllib.error.HTTPError as error:
                if error.code != TOO_LONG:
                    raise
                vectors += [self._embed_beginning(text, kind) for text in batch]
        return vectors

    def _embed_beginning(self, text: str, kind: str) -> list[float]:
        while True:
            try:
                return self._post([text], kind)[0]
            except urllib.error.HTTPError as error:
                if error.code != TOO_LONG or len(text) < SHORTEST:
                    raise
                text = text[: len(text) * 4 // 5]

    def _post(self, texts: list[str], kind: str) -> list[list[float]]:
        body = {"model": self._model, "input": texts, "input_type": kind}
        request = urllib.request.Request(self._address, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as response:
            return [each["embedding"] for each in json.load(response)["data"]]


def build_llama_index_search(documents: Mapping[str, str], embedder: SiteEmbedder) -> Search:
    """Return a search over BM25 and vectors, fused by reciprocal rank in QueryFusionRetriever."""
    from llama_index.core import Document, VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.retrievers.bm25 import BM25Retriever

    class Embedding(BaseEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return embedder.embed([query], "query")[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

        def _get_text_embedding(self, text: str) -> list[float]:
            return embedder.embed([text], "passage")[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return embedder.embed(texts, "passage")

    files = [Document(text=text, metadata={"file_name": name}) for name, text in documents.items()]
    nodes = SentenceSplitter(chunk_size=TOKENS, chunk_overlap=OVERLAP_TOKENS).get_nodes_from_documents(files)
    index = VectorStoreIndex(nodes, embed_model=Embedding(embed_batch_size=BATCH))
    retriever = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=10), BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=10)],
        llm=MockLLM(),
        similarity_top_k=TOP,
        num_queries=1,
        mode="reciprocal_rerank",
        use_async=False,
    )
    return lambda question: [each.node.get_content() for each in retriever.retrieve(question)]


def build_haystack_search(documents: Mapping[str, str], embedder: SiteEmbedder) -> Search:
    """Return a search over BM25 and vectors in memory, fused by reciprocal rank in DocumentJoiner."""
    from haystack import Document
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    splitter = DocumentSplitter(split_by="word", split_length=WORDS, split_overlap=OVERLAP_WORDS)
    files = [Document(content=text, meta={"name": name}) for name, text in documents.items()]
    passages = splitter.run(documents=files)["documents"]
    for passage, vector in zip(passages, embedder.embed([each.content for each in passages], "passage"), strict=True):
        passage.embedding = vector
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(passages)
    by_words, by_meaning = InMemoryBM25Retriever(store, top_k=10), InMemoryEmbeddingRetriever(store, top_k=10)
    joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=TOP)

    def search(question: str) -> list[str]:
        vector = embedder.embed([question], "query")[0]
        found = [by_words.run(query=question)["documents"], by_meaning.run(query_embedding=vector)["documents"]]
        return [each.content for each in joiner.run(documents=found)["documents"]]

    return search


def build_langchain_search(documents: Mapping[str, str], embedder: SiteEmbedder) -> Search:
    """Return a search over BM25 and vectors in memory, fused with equal weights in EnsembleRetriever."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    class SiteEmbeddings(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return embedder.embed(texts, "passage")

        def embed_query(self, text: str) -> list[float]:
            return embedder.embed([text], "query")[0]

    splitter = RecursiveCharacterTextSplitter(chunk_size=CHARACTERS, chunk_overlap=OVERLAP_CHARACTERS)
    files = [Document(page_content=text, metadata={"source": name}) for name, text in documents.items()]
    passages = splitter.split_documents(files)
    by_words = BM25Retriever.from_documents(passages)
    by_words.k = 10
    store = InMemoryVectorStore(SiteEmbeddings())
    store.add_documents(passages)
    ensemble = EnsembleRetriever(retrievers=[by_words, store.as_retriever(search_kwargs={"k": 10})], weights=[0.5, 0.5])
    return lambda question: [each.page_content for each in ensemble.invoke(question)[:TOP]]


PEERS = {
    "llama_index": build_llama_index_search,
    "haystack": build_haystack_search,
    "langchain": build_langchain_search,
}


def main() -> None:
    task = json.load(sys.stdin)
    search = PEERS[sys.argv[1]](task["documents"], SiteEmbedder(task["site"], task["model"]))
    search(task["questions"][0])
    results = []
    for question in task["questions"]:
        started = time.perf_counter()
        passages = list(search(question))
        results.append({"passages": passages, "milliseconds": (time.perf_counter() - started) * 1000})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
