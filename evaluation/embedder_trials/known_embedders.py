"""The embedders that the page "Search quality" offers, with their licences and measured costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from retrieval.index import embedder_choice

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise


@dataclass(frozen=True, slots=True)
class KnownEmbedder:
    """An embedder with its licence and costs. None means not measured (docs/models.md).

    - ``file_megabytes``: the size of the download. ``memory_megabytes``: the memory of a process.
    - ``question_ms``: the processor time of a question. ``passages_a_second``: the speed on one core.
    - ``first_right``: the share of questions whose first passage is right.
    """

    key: str
    label: str
    languages: str | StrPromise
    licence: str
    options: Mapping[str, Any]
    dimension: int
    is_multilingual: bool
    file_megabytes: int
    memory_megabytes: int | None = None
    question_ms: int | None = None
    passages_a_second: float | None = None
    first_right: float | None = None


_MANY = _("about 100")
KNOWN = (
    KnownEmbedder(
        key="multilingual-e5-small",
        label="multilingual-e5-small",
        languages=_MANY,
        licence="MIT",
        options={"built_in": embedder_choice.MULTILINGUAL_E5},
        dimension=384,
        is_multilingual=True,
        file_megabytes=72,
        memory_megabytes=100,
        question_ms=5,
        passages_a_second=12,
        first_right=0.867,
    ),
    KnownEmbedder(
        key="embeddinggemma-300m",
        label="EmbeddingGemma 300M",
        languages=_MANY,
        licence="Gemma Terms of Use",
        options={
            "model": "onnx-community/embeddinggemma-300m-ONNX",
            "query_prompt": "task: search result | query: ",
            "document_prompt": "title: none | text: ",
        },
        dimension=768,
        is_multilingual=True,
        file_megabytes=310,
        memory_megabytes=690,
        question_ms=44,
        passages_a_second=2.9,
        first_right=0.935,
    ),
    KnownEmbedder(
        key="arctic-embed-m-v2.0",
        label="Snowflake Arctic Embed M 2.0",
        languages="74",
        licence="Apache-2.0",
        options={"model": "Snowflake/snowflake-arctic-embed-m-v2.0"},
        dimension=768,
        is_multilingual=True,
        file_megabytes=310,
    ),
    KnownEmbedder(
        key="all-mpnet-base-v2",
        label="all-mpnet-base-v2",
        languages=_("English"),
        licence="Apache-2.0",
        options={"model": "sentence-transformers/all-mpnet-base-v2"},
        dimension=768,
        is_multilingual=False,
        file_megabytes=110,
        memory_megabytes=210,
        question_ms=17,
        passages_a_second=4.1,
        first_right=0.863,
    ),
)
BY_KEY = {known.key: known for known in KNOWN}


def find_known_embedder(name: str) -> KnownEmbedder | None:
    """Return the known embedder for ``name``, a folder or a name on the hub; None if there is none."""
    last = name.rstrip("/").rpartition("/")[2].casefold()
    for known in KNOWN:
        if last in (known.key, str(known.options.get("model", "")).rpartition("/")[2].casefold()):
            return known
    return None


def get_known_options(name: str) -> dict[str, object]:
    """Return the options of the embedder ``name``.

    The options of a known embedder include its prompts, because the files of some models lack them.
    """
    known = find_known_embedder(name)
    return {**(known.options if known is not None and "model" in known.options else {}), "model": name}


# The links of the vector index take about this many bytes for each passage.
BYTES_OF_LINKS = 950


def compute_stored_bytes(passages: int, dimension: int) -> int:
    """Return how many bytes the vectors of all passages take in the database.

    The table and the index each store every vector, with two bytes for each dimension.
    """
    return passages * (2 * 2 * dimension + BYTES_OF_LINKS)
