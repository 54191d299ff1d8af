"""Families of encoders as BERT names their parts: one graph serves them all.

Sources: Devlin et al., "BERT", NAACL 2019; Liu et al., "RoBERTa", 2019; Conneau et al., "Unsupervised Cross-lingual
Representation Learning at Scale" (XLM-RoBERTa), ACL 2020; Song et al., "MPNet", NeurIPS 2020; Sanh et al.,
"DistilBERT", 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

POSITIONS = "embeddings.position_embeddings.weight"
TOKEN_TYPES = "embeddings.token_type_embeddings.weight"  # noqa: S105
RELATIVE_BIAS = "encoder.relative_attention_bias.weight"

_OLD_NAMES = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))
_MPNET_NAMES = (
    ("attention.attn.q.", "attention.self.query."),
    ("attention.attn.k.", "attention.self.key."),
    ("attention.attn.v.", "attention.self.value."),
    ("attention.attn.o.", "attention.output.dense."),
    (".attention.LayerNorm.", ".attention.output.LayerNorm."),
)
_DISTILBERT_NAMES = (
    ("transformer.layer.", "encoder.layer."),
    ("attention.q_lin.", "attention.self.query."),
    ("attention.k_lin.", "attention.self.key."),
    ("attention.v_lin.", "attention.self.value."),
    ("attention.out_lin.", "attention.output.dense."),
    ("sa_layer_norm.", "attention.output.LayerNorm."),
    ("ffn.lin1.", "intermediate.dense."),
    ("ffn.lin2.", "output.dense."),
    (".output_layer_norm.", ".output.LayerNorm."),
)


@dataclass(frozen=True, slots=True)
class Architecture:
    """What sets a family of checkpoints apart.

    ``names`` leads from its names of parts to BERT's. ``positions_follow_padding`` says that its position rows start
    after the padding token's, as in fairseq's models; ``has_token_types`` that it tells two texts apart by types.
    """

    prefix: str
    names: Sequence[tuple[str, str]] = _OLD_NAMES
    has_token_types: bool = False
    positions_follow_padding: bool = False


_ROBERTA = Architecture("roberta.", positions_follow_padding=True)
ARCHITECTURES: Mapping[str, Architecture] = {
    "bert": Architecture("bert.", has_token_types=True),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": Architecture("mpnet.", _MPNET_NAMES, positions_follow_padding=True),
    "distilbert": Architecture("distilbert.", _DISTILBERT_NAMES),
}
"""By the `model_type` of config.json."""

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "tanh_gelu", "gelu_pytorch_tanh": "tanh_gelu", "relu": "relu"}
"""What `hidden_act` can be, and what it is computed by."""


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """The numbers of a config.json that the graph needs. ``positions`` is the longest input in tokens."""

    architecture: Architecture
    layers: int
    heads: int
    width: int
    epsilon: float
    activation: str
    first_position: int
    positions: int


def read_shape(config: Mapping[str, Any]) -> EncoderShape:
    """The shape that a config.json describes. Raises: ValueError, KeyError when no graph can be written for it."""
    kind = str(config.get("model_type"))
    if kind not in ARCHITECTURES:
        raise ValueError(f"its architecture is {kind!r}, and can be one of {', '.join(ARCHITECTURES)}")
    architecture = ARCHITECTURES[kind]
    is_distilled = kind == "distilbert"
    activation = config["activation" if is_distilled else "hidden_act"]
    if activation not in ACTIVATIONS:
        raise ValueError(f"its activation is {activation!r}, and can be one of {', '.join(ACTIVATIONS)}")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise ValueError("only absolute positions can be written as a graph")
    first = int(config.get("pad_token_id", 1)) + 1 if architecture.positions_follow_padding else 0
    return EncoderShape(
        architecture=architecture,
        layers=config["n_layers" if is_distilled else "num_hidden_layers"],
        heads=config["n_heads" if is_distilled else "num_attention_heads"],
        width=config["dim" if is_distilled else "hidden_size"],
        epsilon=1e-12 if is_distilled else config["layer_norm_eps"],
        activation=ACTIVATIONS[activation],
        first_position=first,
        positions=int(config["max_position_embeddings"]) - first,
    )


def with_bert_names(tensors: Mapping[str, Array], shape: EncoderShape) -> dict[str, Array]:
    """The weights under BERT's names; the first row of positions is the first token's."""
    renamed = {}
    for name, tensor in tensors.items():
        known = name.removeprefix(shape.architecture.prefix)
        for old, new in shape.architecture.names:
            known = known.replace(old, new)
        renamed[known] = tensor
    if POSITIONS in renamed:
        renamed[POSITIONS] = renamed[POSITIONS][shape.first_position :]
    return renamed
