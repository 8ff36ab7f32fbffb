"""Settings of a run: one frozen record per section, with defaults.

`_support/settings.py` converts and checks their values, and `_support/toml.py` reads files of them.
The comment beside a setting is its documentation: docs/settings.md repeats it, and a test compares
the two.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import inf
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from regard._support.settings import (
    check_finite,
    check_fraction,
    check_range,
    coerce,
    coerce_fields,
)
from regard._support.text import shorten
from regard._support.toml import parse_toml
from regard._support.toml import read_toml as read_toml
from regard.errors import RegardError, unknown_name, wrong_type

__all__ = [
    "DataConfig",
    "ModelConfig",
    "RunConfig",
    "SearchConfig",
    "TrainConfig",
    "parse_assignment",
    "parse_toml",
    "read_toml",
]

MAX_SEED = 2**63 - 1  # the largest that torch accepts
MAX_BEAM_SIZE = 10**6
MAX_MINUTES = 10**6  # two years
MAX_LENGTH_PENALTY = 10  # a length to the power of hundreds overflows


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """Tokenization of the corpus, and which pairs are dropped or held out.

    Each setting is described in docs/settings.md.

    Raises:
        RegardError: if a value is out of range.

    Example:
        >>> DataConfig(tokenizer="characters").vocab_size
        8000
    """

    tokenizer: Literal["bpe", "words", "characters"] = "bpe"  # unit of the vocabulary
    vocab_size: int = 8000  # maximum, special tokens and bytes included
    joint: bool = True  # one vocabulary for both languages
    max_length: int = 128  # in tokens; pairs with a longer side are dropped
    max_length_ratio: float = 9.0  # between the two sides; pairs beyond it are dropped
    validation_pairs: int = 1000  # held out if no validation set is given; at most a tenth
    bpe_dropout_samples: int = 0  # BPE-dropout: sampled segmentations per pair; 0 disables it
    bpe_dropout: float = 0.1  # BPE-dropout: probability of skipping a merge

    def __post_init__(self) -> None:
        coerce_fields("data", self)
        check_range(
            "data",
            self,
            vocab_size=(1, 10**7),
            max_length=(1, 10**9),
            max_length_ratio=(1, inf),
            validation_pairs=(1, 10**9),
            bpe_dropout_samples=(0, 10**4),
        )
        if self.bpe_dropout_samples and self.tokenizer != "bpe":
            raise RegardError(
                "data.bpe_dropout_samples must be 0 unless data.tokenizer is bpe, "
                f"but it is {self.tokenizer}"
            )
        if not 0 <= self.bpe_dropout <= 1:
            raise RegardError(f"data.bpe_dropout must be from 0 to 1, but it is {self.bpe_dropout}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """Architecture of the translation model; `regard.models.build` builds it.

    Each setting is described in docs/settings.md.

    Raises:
        RegardError: if a value is out of range, or values contradict each other.

    Example:
        >>> config = ModelConfig(width=64, layers=2, heads=4)
        >>> config.kind, config.width
        ('transformer', 64)
    """

    kind: Literal["transformer", "recurrent"] = "transformer"
    width: int = 128  # of embeddings and hidden states (d_model)
    layers: int = 4  # of the encoder and of the decoder, each
    heads: int = 4  # attention heads; transformer only, like the next five settings
    key_heads: int | None = None  # num_kv_heads; fewer than heads: grouped-query attention
    ffn_width: int = 256  # inner width of the feed-forward network
    norm: Literal["post", "pre"] = "post"  # layer norm after the residual sum or before a sublayer
    positions: Literal["sinusoidal", "learned", "rotary", "alibi"] = "sinusoidal"
    max_positions: int = 512  # size of the table of learned positions
    score: str = "scaled_dot"  # attention score; additive makes the recurrent model Bahdanau's
    use_attention: bool = True  # recurrent only; false gives the baseline without attention
    dropout: float = 0.1  # of embeddings and of the output of every sublayer
    inner_dropout: float = 0.0  # of attention weights and inside the feed-forward network
    share_embeddings: bool = True  # between source and target, if the vocabulary is joint
    tie_output: bool = True  # the output projection is the target embedding

    def __post_init__(self) -> None:
        coerce_fields("model", self)
        check_range(
            "model",
            self,
            width=(1, 10**6),
            layers=(1, 1000),
            heads=(1, inf),
            ffn_width=(1, 10**7),
            max_positions=(1, 10**8),
        )
        check_fraction("model", self, "dropout", "inner_dropout")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """Optimization, validation, checkpoints and early stopping.

    Each setting is described in docs/settings.md.

    Raises:
        RegardError: if a value is out of range.

    Example:
        >>> TrainConfig(steps=500, learning_rate=1e-3).steps
        500
    """

    steps: int = 8000  # maximum number of optimizer steps; minutes replaces it
    minutes: float | None = None  # time limit; steps and learning rate are planned for it
    batch_tokens: int = 4096  # tokens per batch on its longer side, padding included
    accumulation_steps: int = 1  # gradient accumulation: batches per optimizer step
    optimizer: Literal["adam", "muon"] = "adam"  # muon needs fewer, but slower steps
    learning_rate: float = 2e-3  # at its peak
    warmup: int = 400  # steps of linear warm-up to the peak
    schedule: Literal["inverse_sqrt", "cosine", "constant"] = "inverse_sqrt"
    betas: tuple[float, float] = (0.9, 0.98)  # decay rates of Adam's two moments
    weight_decay: float = 0.0  # decoupled, as in AdamW
    max_grad_norm: float = 1.0  # gradient clipping: maximum norm; 0 disables it
    label_smoothing: float = 0.1  # probability spread over the whole vocabulary
    validate_every: int = 0  # in steps; 0 validates once per epoch
    patience: int = 10  # early stopping: validations without improvement; 0 disables it
    validation_metric: Literal["loss", "bleu"] = "loss"  # for early stopping and selection
    average_checkpoints: int = 5  # checkpoint averaging: how many
    average_which: Literal["last", "best"] = "last"  # checkpoint averaging: which ones
    save_every: float = 5.0  # minutes between checkpoints to resume from
    snapshots: bool = False  # keep the parameters of steps 0, 25, 50, 100, 200 …
    alignment_loss_weight: float = 0.0  # guided alignment: weight of its loss; 0 disables it
    alignment_layer: int = -2  # guided alignment: decoder layer; negative counts from the last
    processes: int = 0  # that share every batch; 0 starts as many as speed it up
    threads: int = 0  # per process; 0 is one for small models, which gain little from more
    shard: bool = False  # parameters and optimizer state over the processes (FSDP2)
    compile: bool = False  # the model, with torch.compile
    precision: Literal["float32", "bfloat16"] = "float32"  # bfloat16 needs a GPU
    seed: int = 0  # of initialization, batches, dropout, the hold-out split and BPE-dropout

    def __post_init__(self) -> None:
        coerce_fields("train", self)
        check_range(
            "train",
            self,
            steps=(1, 10**12),
            batch_tokens=(1, 10**9),
            accumulation_steps=(1, 10**9),
            learning_rate=(0, inf),
            warmup=(0, 10**12),
            weight_decay=(0, inf),
            max_grad_norm=(0, inf),
            validate_every=(0, inf),
            patience=(0, inf),
            average_checkpoints=(0, inf),
            save_every=(0, inf),
            alignment_loss_weight=(0, inf),
            processes=(0, 1024),
            threads=(0, 1024),
            seed=(0, MAX_SEED),
        )
        check_finite("train", self, "learning_rate", "weight_decay", "alignment_loss_weight")
        check_fraction("train", self, "label_smoothing")
        if self.minutes is not None and not 0 < self.minutes <= MAX_MINUTES:
            raise RegardError(
                f"train.minutes must be above 0 and at most {MAX_MINUTES}, but it is {self.minutes}"
            )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise RegardError(f"train.betas must be from 0 to below 1, but they are {self.betas}")


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchConfig:
    """Beam search of a trained model.

    Each setting is described in docs/settings.md.

    Raises:
        RegardError: if a value is out of range.

    Example:
        >>> SearchConfig(beam_size=0)
        Traceback (most recent call last):
        regard.errors.RegardError: search.beam_size must be 1 or more, but it is 0
    """

    beam_size: int = 5  # hypotheses per sentence; 1 is greedy search
    length_penalty: float = 1.0  # exponent of the length that divides the log-probability

    def __post_init__(self) -> None:
        coerce_fields("search", self)
        check_range("search", self, beam_size=(1, MAX_BEAM_SIZE))
        if not abs(self.length_penalty) <= MAX_LENGTH_PENALTY:
            raise RegardError(
                f"search.length_penalty must be from -{MAX_LENGTH_PENALTY} to "
                f"{MAX_LENGTH_PENALTY}, but it is {self.length_penalty}"
            )

    def with_n_best(self, n_best: int) -> "SearchConfig":
        """Return a copy whose beam is at least as large as a number of hypotheses to return.

        Example:
            >>> SearchConfig(beam_size=5).with_n_best(8).beam_size
            8
        """
        if n_best > MAX_BEAM_SIZE:
            raise RegardError(f"n_best must be at most {MAX_BEAM_SIZE}, but it is {n_best}")
        return replace(self, beam_size=max(self.beam_size, n_best))


SECTIONS: Mapping[str, type] = MappingProxyType(
    {"data": DataConfig, "model": ModelConfig, "train": TrainConfig, "search": SearchConfig}
)
"""The class of each section of a `RunConfig`."""

Section = TypeVar("Section", DataConfig, ModelConfig, TrainConfig, SearchConfig)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """All settings of a run, section by section.

    Raises:
        TypeError: if a section is not of its class.

    Example:
        >>> config = RunConfig.from_dict({"model": {"layers": 6}})
        >>> config.update({"train": {"learning_rate": 1e-3}}).train.learning_rate
        0.001
        >>> config.update({"model": {"layer": 2}})
        Traceback (most recent call last):
        regard.errors.RegardError: no setting is called 'model.layer'. Did you mean ...
    """

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        for name, kind in SECTIONS.items():
            section = getattr(self, name)
            if not isinstance(section, kind):
                error = wrong_type(name, f"a {kind.__name__}", section)
                raise TypeError(f"{error}; RunConfig.from_dict takes a dict of settings")

    @classmethod
    def from_dict(cls, sections: Mapping[str, Any]) -> "RunConfig":
        """Return the defaults, updated with `{section: {setting: value}}`.

        Raises:
            RegardError: if a section or setting is unknown, or a value has the wrong type or range.
        """
        return cls().update(sections)

    def update(self, sections: Mapping[str, Any]) -> "RunConfig":
        """Return a copy with some settings replaced: `{section: {setting: value}}`.

        Raises:
            RegardError: if a section or setting is unknown, or a value has the wrong type or range.
        """
        changed = {}
        for name, settings in sections.items():
            if name not in SECTIONS:
                raise self._unknown_section(name)
            if not isinstance(settings, Mapping):
                raise RegardError(
                    f"[{name}] must be a table of settings, but it is {shorten(settings)}"
                )
            changed[name] = _update_section(name, getattr(self, name), settings)
        return replace(self, **changed)

    def _unknown_section(self, name: object) -> RegardError:
        """Return the error for a section that does not exist; it may be a setting without one."""
        key = str(name).rpartition(".")[2]
        if section := _section_of(key):
            return RegardError(
                f"the setting {key} must be in its section: under [{section}] in a file, "
                f"{{{section!r}: {{{key!r}: ...}}}} in Python"
            )
        return unknown_name("section", name, SECTIONS)

    def to_dict(self) -> dict[str, Any]:
        """Return every setting, defaults included, as JSON represents it."""
        content: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return content


def parse_assignment(assignment: str) -> dict[str, Any]:
    """Parse `section.key=value` from the command line.

    Example:
        >>> parse_assignment("train.learning_rate=1e-3")
        {'train': {'learning_rate': 0.001}}
    """
    name, equals, text = assignment.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        known = _section_of(name.strip())
        hint = f". Did you mean '{known}.{assignment.strip()}'?" if known else ""
        raise RegardError(
            f"a setting must be section.key=value, but it is {shorten(assignment)}{hint}"
        )
    try:
        value = parse_toml(f"value = {text}", "a setting")["value"]
    except RegardError:
        value = _parse_scalar(text.strip())
    return {section: {key: value}}


def _section_of(key: str) -> str | None:
    """Return the section that has a setting, if there is one."""
    for section, kind in SECTIONS.items():
        if key in (one.name for one in fields(kind)):
            return section
    return None


def _parse_scalar(text: str) -> float | str:
    """Parse what is not TOML: a number such as .3, or an unquoted string."""
    try:
        return float(text)
    except ValueError:
        return text


def _update_section(name: str, section: Section, settings: Mapping[str, Any]) -> Section:
    """Return the section with some settings replaced."""
    types = {one.name: one.type for one in fields(section)}
    changed = {}
    for key, value in settings.items():
        if key not in types:
            raise unknown_name("setting", f"{name}.{key}", [f"{name}.{known}" for known in types])
        changed[key] = coerce(f"{name}.{key}", value, types[key])
    return replace(section, **changed)
