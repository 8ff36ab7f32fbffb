"""Builders, the only code that turns a `ModelConfig` into modules; parameter counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import nn

from regard.attention import MultiHeadAttention
from regard.config import ModelConfig
from regard.errors import RegardError, wrong_type
from regard.models.encoder_decoder import Decoder, Encoder
from regard.models.layers import Embedding, FeedForward, TransformerLayer
from regard.models.recurrent import RecurrentModel
from regard.models.transformer import Classifier, LanguageModel, Transformer
from regard.positions import ALiBi, Learned, Rotary, Sinusoidal

_SAMPLE_LAYERS = 2  # the first layer of a recurrent model is smaller than the others


def build(config: ModelConfig, vocab_size: int | tuple[int, int]) -> Transformer | RecurrentModel:
    """Build the encoder-decoder model that a config describes.

    Args:
        config: the settings of the model.
        vocab_size: number of tokens of a vocabulary that source and target share, or a number for
            each. With `config.share_embeddings`, two vocabularies of one size are taken to be the
            same one and share their embedding.

    Returns:
        A new model, initialised from torch's global random generator.

    Raises:
        RegardError: if settings do not fit together.

    Example:
        >>> from regard.config import ModelConfig
        >>> model = build(ModelConfig(width=32, layers=1, heads=2), vocab_size=100)
        >>> model.source_embedding is model.target_embedding
        True
        >>> model = build(ModelConfig(width=32, layers=1, heads=2), vocab_size=(100, 90))
        >>> len(model.output_weight)
        90
    """
    if not isinstance(config, ModelConfig):
        raise wrong_type("config", "a ModelConfig", config)
    source_size, target_size = _vocab_sizes(vocab_size)
    with _name_model_settings():
        source = _embedding(config, source_size)
        is_shared = config.share_embeddings and source_size == target_size
        target = source if is_shared else _embedding(config, target_size)
        if config.kind == "recurrent":
            return RecurrentModel(
                source,
                target,
                layers=config.layers,
                score=config.score,
                use_attention=config.use_attention,
                dropout=config.dropout,
                tie_output=config.tie_output,
            )
        encoder = Encoder(_layers(config), _final_norm(config))
        decoder = Decoder(_layers(config, cross=True), _final_norm(config))
        return Transformer(source, target, encoder, decoder, config.tie_output)


def _vocab_sizes(vocab_size: int | tuple[int, int]) -> tuple[int, int]:
    """Return the sizes of the source and the target vocabulary."""
    sizes = (vocab_size, vocab_size) if isinstance(vocab_size, int) else tuple(vocab_size)
    if len(sizes) != 2:
        raise RegardError(
            "vocab_size must be a number of tokens, or one for the source and one for the target, "
            f"but it is {vocab_size}"
        )
    if min(sizes) < 1:
        raise RegardError(f"vocab_size must be 1 or more, but it is {vocab_size}")
    return sizes


def count_parameters(config: ModelConfig, vocab_size: int | tuple[int, int]) -> int:
    """Return how many parameters `build` would create, in no time and no memory.

    Two models of a few layers are built on the meta device; every further layer adds the
    difference between them.

    Args:
        config: the settings of the model.
        vocab_size: as for `build`.

    Raises:
        RegardError: if settings do not fit together.

    Example:
        >>> from regard.config import ModelConfig
        >>> config = ModelConfig(width=32, layers=7, heads=2)
        >>> model = build(config, 100)
        >>> count_parameters(config, 100) == sum(p.numel() for p in model.parameters())
        True
    """
    if config.layers <= _SAMPLE_LAYERS + 1:
        return _count_on_meta(config, vocab_size)
    fewer, more = (
        _count_on_meta(replace(config, layers=layers), vocab_size)
        for layers in (_SAMPLE_LAYERS, _SAMPLE_LAYERS + 1)
    )
    return fewer + (config.layers - _SAMPLE_LAYERS) * (more - fewer)


def min_parameters(config: ModelConfig, vocab_size: tuple[int, int]) -> int:
    """Return a lower bound of how many parameters `build` would create, by arithmetic alone.

    `count_parameters` is exact, but its first call imports parts of torch for seconds. This bound
    is at least a tenth of the exact number unless the model is tiny.

    Args:
        config: the settings of the model.
        vocab_size: sizes of the source and target vocabularies.

    Example:
        >>> from regard.config import ModelConfig
        >>> config = ModelConfig(width=32, layers=7, heads=2)
        >>> 0.5 < min_parameters(config, (100, 100)) / count_parameters(config, 100) < 1
        True
    """
    width, is_recurrent = config.width, config.kind == "recurrent"
    is_shared = config.share_embeddings and vocab_size[0] == vocab_size[1]
    embeddings = vocab_size[0] if is_shared else sum(vocab_size)
    if not is_recurrent and config.positions == "learned":
        embeddings += config.max_positions
    # of each layer: a matrix of queries and the feed-forward network, or one gate of three
    layer = width * width if is_recurrent else width * (width + 2 * config.ffn_width)
    return embeddings * width + 2 * config.layers * layer


def _count_on_meta(config: ModelConfig, vocab_size: int | tuple[int, int]) -> int:
    with torch.device("meta"):  # shapes without memory
        model = build(config, vocab_size)
    return sum(parameter.numel() for parameter in model.parameters())


def build_language_model(config: ModelConfig, vocab_size: int) -> LanguageModel:
    """Build a decoder-only language model.

    Args:
        config: the settings of the model; `kind` is ignored.
        vocab_size: number of tokens.

    Returns:
        A new model, initialised from torch's global random generator.

    Raises:
        RegardError: if settings do not fit together.

    Example:
        >>> from regard.config import ModelConfig
        >>> model = build_language_model(ModelConfig(width=32, layers=1, heads=2), vocab_size=100)
        >>> model.init_state(batch_size=3).batch_size
        3
    """
    with _name_model_settings():
        decoder = Decoder(_layers(config), _final_norm(config))
        return LanguageModel(_embedding(config, vocab_size), decoder, config.tie_output)


def build_classifier(config: ModelConfig, vocab_size: int, num_classes: int) -> Classifier:
    """Build an encoder-only classifier of texts.

    Args:
        config: the settings of the model; `kind` is ignored.
        vocab_size: number of tokens.
        num_classes: number of classes.

    Returns:
        A new model, initialised from torch's global random generator.

    Raises:
        RegardError: if settings do not fit together.

    Example:
        >>> import torch
        >>> from regard.config import ModelConfig
        >>> config = ModelConfig(width=32, layers=1, heads=2)
        >>> model = build_classifier(config, vocab_size=100, num_classes=3)
        >>> model(torch.tensor([[4, 5, 6, 7]]), torch.tensor([4])).shape
        torch.Size([1, 3])
    """
    with _name_model_settings():
        encoder = Encoder(_layers(config), _final_norm(config))
        return Classifier(_embedding(config, vocab_size), encoder, num_classes)


@contextmanager
def _name_model_settings() -> Iterator[None]:
    """Add to errors of modules that the settings under [model] do not fit."""
    try:
        yield
    except ValueError as error:
        raise RegardError(f"the settings under [model] do not fit: {error}") from error


def _embedding(config: ModelConfig, vocab_size: int) -> Embedding:
    positions: nn.Module | None = None
    if config.kind == "transformer" and config.positions == "sinusoidal":
        positions = Sinusoidal(config.width)
    if config.kind == "transformer" and config.positions == "learned":
        positions = Learned(config.max_positions, config.width)
    return Embedding(vocab_size, config.width, positions, config.dropout)


def _layers(config: ModelConfig, cross: bool = False) -> list[TransformerLayer]:
    _check_heads(config)
    return [
        TransformerLayer(
            _self_attention(config),
            FeedForward(config.width, config.ffn_width, config.inner_dropout),
            _attention(config) if cross else None,
            dropout=config.dropout,
            pre_norm=config.norm == "pre",
        )
        for _ in range(config.layers)
    ]


def _check_heads(config: ModelConfig) -> None:
    """Raise an error if heads do not divide the width; the modules' own errors name arguments."""
    width, heads, key_heads = config.width, config.heads, config.key_heads
    if width % heads:
        raise RegardError(
            f"model.width must be a multiple of model.heads, but {width} / {heads} leaves "
            f"{width % heads}; {_suggest_heads(config, 1)}"
        )
    if config.positions == "rotary" and width // heads % 2:
        raise RegardError(
            "model.width / model.heads must be even for rotary positions, but "
            f"{width} / {heads} is {width // heads}; {_suggest_heads(config, 2)}"
        )
    if key_heads is not None and key_heads > 0 and heads % key_heads:
        raise RegardError(
            f"model.heads must be a multiple of model.key_heads, but {heads} / {key_heads} leaves "
            f"{heads % key_heads}; model.key_heads={_nearest_divisor(heads, key_heads)} would work"
        )


def _suggest_heads(config: ModelConfig, step: int) -> str:
    """Name the nearest settings with heads whose width is a multiple of a step."""
    width, heads = config.width, config.heads
    options = [f"model.width={max(round(width / (heads * step)), 1) * heads * step}"]
    if width % step == 0:
        options.insert(0, f"model.heads={_nearest_divisor(width // step, heads)}")
    return f"{' or '.join(options)} would work"


def _nearest_divisor(number: int, to: int) -> int:
    return min((n for n in range(1, number + 1) if number % n == 0), key=lambda n: abs(n - to))


def _self_attention(config: ModelConfig) -> MultiHeadAttention:
    """Build self-attention, with positions: cross-attention has none, as it relates two texts."""
    if config.positions == "rotary":
        return _attention(config, Rotary(config.width // config.heads))
    if config.positions == "alibi":
        return _attention(config, ALiBi(config.heads))
    return _attention(config)


def _attention(config: ModelConfig, positions: Rotary | ALiBi | None = None) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.width,
        config.heads,
        score=config.score,
        key_heads=config.key_heads,
        dropout=config.inner_dropout,
        positions=positions,
    )


def _final_norm(config: ModelConfig) -> nn.Module | None:
    return nn.LayerNorm(config.width) if config.norm == "pre" else None


def summary(model: nn.Module) -> str:
    """Return a table of the parameters of each submodule, shared parameters counted once.

    Args:
        model: any module.

    Returns:
        One line per submodule and one for the total.

    Example:
        >>> print(summary(nn.Sequential(nn.Linear(100, 100), nn.Linear(1, 1))))
        0      10,100
        1           2
        total  10,102
    """
    counts: dict[str, int] = {}
    for name, parameter in model.named_parameters():  # yields a shared parameter once
        submodule = name.split(".")[0]
        counts[submodule] = counts.get(submodule, 0) + parameter.numel()
    rows = [*counts.items(), ("total", sum(counts.values()))]
    name_width = max(len(name) for name, _ in rows)
    count_width = max(len(f"{count:,}") for _, count in rows)
    return "\n".join(f"{name:<{name_width}}  {count:>{count_width},}" for name, count in rows)
