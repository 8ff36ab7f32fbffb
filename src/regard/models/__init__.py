"""Translators: the only place where settings become modules."""

from collections.abc import Callable
from typing import TypeVar

from torch import nn

from regard.attention import MultiHeadAttention
from regard.config import ModelConfig
from regard.errors import RegardError
from regard.models.classifier import Classifier as Classifier
from regard.models.decoder import Decoder as Decoder
from regard.models.encoder import Encoder as Encoder
from regard.models.language_model import LanguageModel as LanguageModel
from regard.models.layer import Layer as Layer
from regard.models.layers import Embedding as Embedding
from regard.models.layers import FeedForward as FeedForward
from regard.models.layers import Residual as Residual
from regard.models.protocols import Looks as Looks
from regard.models.recurrent import Recurrent as Recurrent
from regard.models.summary import describe as describe
from regard.models.transformer import Transformer as Transformer
from regard.positions import ALiBi, Learned, Rotary, Sinusoidal

Size = TypeVar("Size")
Made = TypeVar("Made")


def build(settings: ModelConfig, vocabularies: tuple[int, int]) -> Transformer | Recurrent:
    """Make the translator that the settings describe, for a source and a target vocabulary.

    Where `settings.shared` says so, vocabularies of one size are taken for one and the same.
    """
    return _explained(_translator, settings, vocabularies)


def build_language_model(settings: ModelConfig, vocabulary: int) -> LanguageModel:
    """Make a decoder alone."""

    def make(settings: ModelConfig, vocabulary: int) -> LanguageModel:
        decoder = Decoder(_layers(settings), _final_norm(settings))
        return LanguageModel(_embedding(settings, vocabulary), decoder, settings.tie_output)

    return _explained(make, settings, vocabulary)


def build_classifier(settings: ModelConfig, vocabulary: int, classes: int) -> Classifier:
    """Make an encoder alone, with a layer that scores classes."""

    def make(settings: ModelConfig, vocabulary: int) -> Classifier:
        encoder = Encoder(_layers(settings), _final_norm(settings))
        return Classifier(_embedding(settings, vocabulary), encoder, classes)

    return _explained(make, settings, vocabulary)


def _explained(
    make: Callable[[ModelConfig, Size], Made], settings: ModelConfig, size: Size
) -> Made:
    try:
        return make(settings, size)
    except RegardError:
        raise
    except ValueError as problem:
        raise RegardError(f"the settings under [model] do not fit: {problem}") from problem


def _translator(settings: ModelConfig, vocabularies: tuple[int, int]) -> Transformer | Recurrent:
    source = _embedding(settings, vocabularies[0])
    shared = settings.share_embeddings and vocabularies[0] == vocabularies[1]
    target = source if shared else _embedding(settings, vocabularies[1])
    if settings.kind == "recurrent":
        return Recurrent(
            source,
            target,
            layers=settings.layers,
            score=settings.score,
            attends=settings.use_attention,
            dropout=settings.dropout,
            tied=settings.tie_output,
        )
    encoder = Encoder(_layers(settings), _final_norm(settings))
    decoder = Decoder(_layers(settings, cross=True), _final_norm(settings))
    return Transformer(source, target, encoder, decoder, settings.tie_output)


def _embedding(settings: ModelConfig, vocabulary: int) -> Embedding:
    tables: dict[str, Callable[[], nn.Module]] = {
        "sinusoidal": lambda: Sinusoidal(settings.width),
        "learned": lambda: Learned(settings.max_positions, settings.width),
    }
    table = tables.get(settings.positions) if settings.kind == "transformer" else None
    positions = None if table is None else table()
    return Embedding(vocabulary, settings.width, positions, settings.dropout)


def _layers(settings: ModelConfig, cross: bool = False) -> list[Layer]:
    return [
        Layer(
            _attention(settings, looks_back=True),
            FeedForward(settings.width, settings.ffn_width, settings.inner_dropout),
            _attention(settings, looks_back=False) if cross else None,
            dropout=settings.dropout,
            pre_norm=settings.norm == "pre",
        )
        for _ in range(settings.layers)
    ]


def _attention(settings: ModelConfig, looks_back: bool) -> MultiHeadAttention:
    """Make one attention; only within one text do distances between words mean something."""
    positions: Rotary | ALiBi | None = None
    if looks_back and settings.positions == "rotary":
        positions = Rotary(settings.width // settings.heads)
    if looks_back and settings.positions == "alibi":
        positions = ALiBi(settings.heads)
    return MultiHeadAttention(
        settings.width,
        settings.heads,
        score=settings.score,
        key_heads=settings.key_heads,
        dropout=settings.inner_dropout,
        positions=positions,
    )


def _final_norm(settings: ModelConfig) -> nn.Module | None:
    return nn.LayerNorm(settings.width) if settings.norm == "pre" else None
