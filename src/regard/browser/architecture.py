"""The architecture of a model as data: what its parts are and which parameters they have.

Every part is described by what the page's modules compute from it; any other part is refused by
its name, so that no page translates otherwise than the model.
"""

from typing import Any

from torch import nn

from regard._support.linear import Linear
from regard.attention import (
    Additive,
    Bilinear,
    Cosine,
    Dot,
    Gaussian,
    MultiHeadAttention,
    ScaledDot,
    Score,
)
from regard.browser.parameters import ParameterTable
from regard.errors import RegardError
from regard.models import (
    Decoder,
    Embedding,
    Encoder,
    FeedForward,
    RecurrentModel,
    Residual,
    Seq2SeqModel,
    Transformer,
    TransformerLayer,
)
from regard.positions import ALiBi, Learned, Rotary, Sinusoidal

Record = dict[str, Any]


def describe_model(model: Seq2SeqModel, table: ParameterTable) -> Record:
    """Return the architecture of a model, and put its parameters into a table.

    Args:
        model: the model, made of parts that the page can compute.
        table: receives the parameters.

    Raises:
        RegardError: if the page cannot compute a part of the model; the message names it.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.models import build
        >>> model = build(ModelConfig(width=8, layers=1, heads=2, positions="rotary"), 9)
        >>> record = describe_model(model, ParameterTable("float32"))
        >>> record["encoder"]["layers"][0]["attention"]["positions"]
        {'kind': 'rotary', 'width': 4, 'base': 10000.0, 'interleaved': False}
    """
    describe = _Describer(table)
    if type(model) is RecurrentModel:
        return describe.recurrent(model)
    _check_type(model, Transformer)
    assert isinstance(model, Transformer)
    return describe.transformer(model)


class _Describer:
    """Describes modules; names of parameters are for error messages only."""

    def __init__(self, table: ParameterTable) -> None:
        self.table = table

    def transformer(self, model: Transformer) -> Record:
        _check_type(model.encoder, Encoder)
        _check_type(model.decoder, Decoder)
        return {
            "kind": "transformer",
            "source_embedding": self.embedding("source_embedding", model.source_embedding),
            "target_embedding": self.embedding("target_embedding", model.target_embedding),
            "encoder": self.stack("encoder", model.encoder),
            "decoder": self.stack("decoder", model.decoder),
            "output": self.table.add("output_weight", model.output_weight),
        }

    def recurrent(self, model: RecurrentModel) -> Record:
        projection, width = model.key_projection, model.target_embedding.width
        return {
            "kind": "recurrent",
            "source_embedding": self.embedding("source_embedding", model.source_embedding),
            "target_embedding": self.embedding("target_embedding", model.target_embedding),
            "encoder": [
                {
                    "forward": self.cell(model.encoder, f"l{layer}"),
                    "backward": self.cell(model.encoder, f"l{layer}_reverse"),
                }
                for layer in range(model.encoder.num_layers)
            ],
            "decoder": [
                self.cell(model.decoder, f"l{layer}") for layer in range(model.decoder.num_layers)
            ],
            "init_projection": self.linear("init_projection", model.init_projection),
            "key_projection": projection and self.linear("key_projection", projection),
            "score": self.score("score", model.score, width),
            "use_attention": model.use_attention,
            "pre_output": self.linear("pre_output", model.pre_output),
            "output": self.table.add("output_weight", model.output_weight),
        }

    def cell(self, gru: nn.GRU, suffix: str) -> Record:
        _check_type(gru, nn.GRU)
        return {
            part: {
                "weight": self.table.add(suffix, getattr(gru, f"weight_{initials}_{suffix}")),
                "bias": self.table.add(suffix, getattr(gru, f"bias_{initials}_{suffix}")),
            }
            for part, initials in (("input", "ih"), ("hidden", "hh"))
        }

    def embedding(self, name: str, embedding: Embedding) -> Record:
        _check_type(embedding, Embedding)
        positions: Record | None = None
        match embedding.positions:
            case None:
                pass
            case Sinusoidal(base=base) as module if type(module) is Sinusoidal:
                positions = {"kind": "sinusoidal", "base": base}
            case Learned(table=table) as module if type(module) is Learned:
                number = self.table.add(f"{name}.positions.table", table)
                positions = {"kind": "learned", "table": number}
            case module:
                raise _unsupported(f"{type(module).__name__} positions of an embedding")
        weight = self.table.add(f"{name}.weight", embedding.weight)
        return {"weight": weight, "scale": embedding.width**0.5, "positions": positions}

    def stack(self, name: str, stack: Encoder | Decoder) -> Record:
        layers = [
            self.layer(f"{name}.layers.{n}", layer)  # type: ignore[arg-type]  # checked there
            for n, layer in enumerate(stack.layers)
        ]
        norm = None if stack.norm is None else self.norm(f"{name}.norm", stack.norm)
        return {"layers": layers, "norm": norm}

    def layer(self, name: str, layer: TransformerLayer) -> Record:
        _check_type(layer, TransformerLayer)
        record: Record = {
            "attention": self.attention(f"{name}.attention", layer.attention),
            "attention_residual": self.residual(name, layer.attention_residual),
            "feed_forward": self.feed_forward(f"{name}.feed_forward", layer.feed_forward),
            "feed_forward_residual": self.residual(name, layer.feed_forward_residual),
            "cross": None,
            "cross_residual": None,
        }
        if layer.cross is not None and layer.cross_residual is not None:
            if layer.cross.positions is not None:
                raise _unsupported(
                    f"{type(layer.cross.positions).__name__} positions in cross-attention"
                )
            record["cross"] = self.attention(f"{name}.cross", layer.cross)
            record["cross_residual"] = self.residual(name, layer.cross_residual)
        return record

    def residual(self, name: str, residual: Residual) -> Record:
        _check_type(residual, Residual)
        return self.norm(name, residual.norm) | {"is_pre_norm": residual.pre_norm}

    def norm(self, name: str, norm: nn.Module) -> Record:
        if type(norm) is not nn.LayerNorm or norm.weight is None or len(norm.normalized_shape) > 1:
            raise _unsupported(f"the norm {norm}")
        bias = None if norm.bias is None else self.table.add(f"{name}.bias", norm.bias)
        return {
            "weight": self.table.add(f"{name}.norm", norm.weight),
            "bias": bias,
            "eps": norm.eps,
        }

    def feed_forward(self, name: str, module: FeedForward) -> Record:
        _check_type(module, FeedForward)
        if module.activation not in ("relu", "gelu"):
            raise _unsupported(f"the activation {module.activation}")
        up, down = self.linear(f"{name}.up", module.up), self.linear(f"{name}.down", module.down)
        return {"up": up, "down": down, "activation": module.activation}

    def attention(self, name: str, attention: MultiHeadAttention) -> Record:
        _check_type(attention, MultiHeadAttention)
        parts = ("query", "key", "value", "out")
        projections = {
            part: self.linear(f"{name}.{part}", getattr(attention, part)) for part in parts
        }
        return projections | {
            "heads": attention.heads,
            "key_heads": attention.key_heads,
            "head_width": attention.head_width,
            "score": self.score(name, attention.score, attention.head_width),
            "positions": _describe_positions(attention.positions),
        }

    def linear(self, name: str, linear: nn.Linear) -> Record:
        if type(linear) not in (nn.Linear, Linear):
            raise _unsupported(f"the projection {linear}")
        bias = None if linear.bias is None else self.table.add(f"{name}.bias", linear.bias)
        return {"weight": self.table.add(f"{name}.weight", linear.weight), "bias": bias}

    def score(self, name: str, score: Score, head_width: int) -> Record:
        """Describe a score: what compares queries with keys, and the factor of the result."""
        projections = {"query_projection": None, "key_projection": None, "vector": None}
        record: Record = {"compare": "product", "scale": 1.0, "cap": None} | projections
        match score:
            case Dot() if type(score) is Dot:
                return record
            case ScaledDot(scale=scale, cap=cap) if type(score) is ScaledDot:
                return record | {"scale": head_width**-0.5 if scale is None else scale, "cap": cap}
            case Cosine() if type(score) is Cosine:
                return record | {"compare": "cosine", "scale": 1 / score.temperature.item()}
            case Gaussian() if type(score) is Gaussian:
                return record | {"compare": "distance", "scale": score.bandwidth.item() ** -2}
            case Bilinear(matrix=matrix) if type(score) is Bilinear:
                number = self.table.add(f"{name}.score.matrix", matrix.T)
                return record | {"query_projection": number}
            case Additive() if type(score) is Additive:
                return record | {
                    "compare": "tanh_sum",
                    "query_projection": self.linear(name, score.query_projection)["weight"],
                    "key_projection": self.linear(name, score.key_projection)["weight"],
                    "vector": self.table.add(f"{name}.score.v", score.tanh_sum.v),
                }
        raise _unsupported(f"the score {score.display_name}")


def _describe_positions(positions: nn.Module | None) -> Record | None:
    match positions:
        case None:
            return None
        case Rotary(width=width, base=base, interleaved=interleaved) if type(positions) is Rotary:
            return {"kind": "rotary", "width": width, "base": base, "interleaved": interleaved}
        case ALiBi() if type(positions) is ALiBi:
            return {"kind": "alibi", "slopes": positions.slopes.tolist()}
    raise _unsupported(f"{type(positions).__name__} positions of attention")


def _check_type(module: nn.Module, expected: type[nn.Module]) -> None:
    """Raise unless a module is exactly of a type: a subclass may compute something else."""
    if type(module) is not expected:
        raise _unsupported(f"a {type(module).__name__}")


def _unsupported(part: str) -> RegardError:
    return RegardError(f"a page cannot compute {part}; to='onnx' can")
