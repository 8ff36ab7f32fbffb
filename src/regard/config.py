"""Every setting of a run, with its default."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin

from regard.errors import RegardError, unknown_name

Section = TypeVar("Section")

LARGEST_SEED = 2**63 - 1  # that torch takes
MINUTES = 10**6  # two years, the longest time box
PENALTY = 10  # the strongest; a length to a power of hundreds is no number any more


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """How text becomes tokens, and which pairs are left out."""

    tokenizer: Literal["bpe", "words", "characters"] = "bpe"  # what text is cut into
    vocab_size: int = 8000  # in a vocabulary, at most
    joint: bool = True  # one vocabulary for both languages
    max_length: int = 128  # pieces of a sentence; pairs with a longer one are left out
    max_length_ratio: float = 9.0  # of the two lengths; pairs beyond it are left out
    validation_pairs: int = 1000  # pairs kept for validation if none are given, at most a tenth
    bpe_dropout_samples: int = (
        0  # ways, drawn by chance, in which BPE cuts each pair to learn from; 0 for its own
    )
    bpe_dropout: float = 0.1  # share of BPE's merges that each of those ways leaves out

    def __post_init__(self) -> None:
        _check_least(
            "data",
            self,
            vocab_size=1,
            max_length=1,
            max_length_ratio=1,
            validation_pairs=1,
            bpe_dropout_samples=0,
        )
        _check_most(
            "data",
            self,
            vocab_size=10**7,
            max_length=10**9,
            validation_pairs=10**9,
            bpe_dropout_samples=10**4,
        )
        if self.bpe_dropout_samples and self.tokenizer != "bpe":
            raise RegardError(
                f"data.bpe_dropout_samples must be 0 unless data.tokenizer is bpe, but it is "
                f"{self.tokenizer}"
            )
        if not 0 <= self.bpe_dropout <= 1:
            raise RegardError(f"data.bpe_dropout must be from 0 to 1, but it is {self.bpe_dropout}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """What a translator is made of."""

    kind: Literal["transformer", "recurrent"] = "transformer"
    width: int = 128  # numbers in one vector
    layers: int = 4  # of encoder and decoder each
    heads: int = 4  # transformer only, as are the next five
    key_heads: int | None = None  # as many as heads, unless they are grouped
    ffn_width: int = 256  # width inside the feed-forward
    norm: Literal["post", "pre"] = "post"  # after what a layer adds, as in the paper, or before
    positions: Literal["sinusoidal", "learned", "rotary", "alibi"] = "sinusoidal"
    max_positions: int = 512  # positions of a learned table
    score: str = "scaled dot"  # additive makes the recurrent one Bahdanau's
    use_attention: bool = True  # recurrent only; without, it shows what attention is good for
    dropout: float = 0.1  # of what a layer adds, and of embeddings
    inner_dropout: float = 0.0  # inside attention and feed-forward; transformer only
    share_embeddings: bool = (
        True  # one embedding for source and target, if their vocabularies are one
    )
    tie_output: bool = True  # the output layer is the target embedding

    def __post_init__(self) -> None:
        _check_least("model", self, width=1, layers=1, heads=1, ffn_width=1, max_positions=1)
        _check_most("model", self, width=10**6, layers=10**4, ffn_width=10**7, max_positions=10**8)
        _check_shares("model", self, "dropout", "inner_dropout")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """How a model learns."""

    steps: int = 8000  # updates of the weights, at most; with minutes, as many as there is time for
    minutes: float | None = None  # a time box; the schedule plans for it
    batch_tokens: int = 4096  # in a batch, padding included, on the longer side
    accumulation_steps: int = 1  # batches in an update
    optimizer: Literal["adam", "muon"] = "adam"  # muon learns in fewer, somewhat slower steps
    learning_rate: float = 2e-3  # at its peak
    warmup: int = 400  # steps to climb to the peak
    schedule: Literal["inverse_sqrt", "cosine", "constant"] = "inverse_sqrt"
    betas: tuple[float, float] = (0.9, 0.98)  # what Adam remembers of gradients, of their squares
    weight_decay: float = 0.0  # of weights, as in AdamW
    max_grad_norm: float = 1.0  # greatest norm of a gradient; 0 for none
    label_smoothing: float = 0.1  # of labels
    validate_every: int = 0  # steps; 0 is once per epoch
    patience: int = 10  # validations without progress before it stops; 0 for no end
    validation_metric: Literal["loss", "bleu"] = "loss"  # what progress is
    average_checkpoints: int = 5  # checkpoints whose mean is the result
    average_which: Literal["last", "best"] = "last"  # which they are
    save_every: float = 5.0  # minutes between states that a killed run goes on from
    snapshots: bool = False  # keep weights of steps 0, 25, 50, 100, 200 …, to look back at
    alignment_loss_weight: float = (
        0.0  # weight of the loss that pulls a head towards given alignments
    )
    alignment_layer: int = -2  # of the decoder, counted from the last if negative
    threads: int = 0  # of one process; 0 is one for small models, which gain little from more
    compile: bool = False  # the model, with torch.compile
    precision: Literal["float32", "bfloat16"] = "float32"  # bfloat16 on a GPU only
    seed: int = 0  # of weights, order, dropout, pairs held out, cuts

    def __post_init__(self) -> None:
        _check_least(
            "train", self, steps=1, batch_tokens=1, accumulation_steps=1, average_checkpoints=0
        )
        _check_least(
            "train",
            self,
            learning_rate=0,
            warmup=0,
            weight_decay=0,
            max_grad_norm=0,
            label_smoothing=0,
            alignment_loss_weight=0,
        )
        _check_least("train", self, validate_every=0, patience=0, save_every=0, threads=0, seed=0)
        _check_most(
            "train", self, steps=10**12, warmup=10**12, batch_tokens=10**9, accumulation_steps=10**9
        )
        _check_most("train", self, threads=1024, seed=LARGEST_SEED)
        _check_finite("train", self, "learning_rate", "weight_decay", "alignment_loss_weight")
        _check_shares("train", self, "label_smoothing")
        if self.minutes is not None and not 0 < self.minutes <= MINUTES:
            raise RegardError(
                f"train.minutes must be above 0 and at most {MINUTES}, but it is {self.minutes}"
            )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise RegardError(f"train.betas must be from 0 to below 1, but they are {self.betas}")


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchConfig:
    """How a trained model translates."""

    beam_size: int = 5  # beginnings that are followed at a time; 1 is greedy
    length_penalty: float = 1.0  # the power of the length by which log probabilities are divided

    def __post_init__(self) -> None:
        _check_least("search", self, beam_size=1)
        _check_most("search", self, beam_size=10**6)
        if not abs(self.length_penalty) <= PENALTY:
            raise RegardError(
                f"search.length_penalty must be from -{PENALTY} to {PENALTY}, "
                f"but it is {self.length_penalty}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunConfig:
    """All settings, section by section."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def to_json(self) -> str:
        """Write every setting, defaults included."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "RunConfig":
        """Read what `to_json` wrote."""
        return change(cls(), json.loads(text))


def _check_least(name: str, section: object, **least: int) -> None:
    """Refuse settings below the least that makes sense, and those that are not numbers."""
    for key, limit in least.items():
        value = getattr(section, key)
        if not value >= limit:
            raise RegardError(f"{name}.{key} must be {limit} or more, but it is {value}")


def _check_most(name: str, section: object, **most: int) -> None:
    """Refuse settings beyond what any machine has room or time for."""
    for key, limit in most.items():
        value = getattr(section, key)
        if not value <= limit:
            raise RegardError(f"{name}.{key} must be at most {limit}, but it is {_short(value)}")


def _short(value: int | float) -> str:
    """Write a number that may have hundreds of digits."""
    text = str(value)
    return text if len(text) < 30 else f"{text[:10]}… of {len(text)} digits"


def _check_finite(name: str, section: object, *keys: str) -> None:
    """Refuse infinity, which no computation comes back from."""
    for key in keys:
        value = getattr(section, key)
        if not isfinite(value):
            raise RegardError(f"{name}.{key} must be finite, but it is {value}")


def _check_shares(name: str, section: object, *keys: str) -> None:
    """Refuse shares of nothing less, or of everything and more."""
    for key in keys:
        value = getattr(section, key)
        if not 0 <= value < 1:
            raise RegardError(f"{name}.{key} must be from 0 to below 1, but it is {value}")


def read(path: Path) -> dict[str, Any]:
    """Read a TOML file of settings; `change` says whether they exist."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise RegardError(f"cannot read the settings in {path}: {problem}") from problem
    except ValueError as problem:  # a number of thousands of digits, too
        raise RegardError(f"{path} must be TOML, but it is not: {problem}") from problem


def parse(assignment: str) -> dict[str, Any]:
    """Read `section.key=value`, as on the command line."""
    name, equals, text = assignment.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise RegardError(f"a setting must be section.key=value, but it is {assignment!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        value = _plain(text.strip())
    return {section: {key: value}}


def _plain(text: str) -> float | str:
    """Read what is no TOML: a number such as .3, or a word, which needs no quotes here."""
    try:
        return float(text)
    except ValueError:
        return text


def change(section: Section, changes: Mapping[str, Any], name: str = "") -> Section:
    """Give the section with some settings changed; refuse what does not exist or fit."""
    assert is_dataclass(section)
    known = {one.name: one.type for one in fields(section)}
    new: dict[str, Any] = {}
    for key, value in changes.items():
        if key not in known:
            raise unknown_name(
                "setting" if name else "section", f"{name}{key}", _named(known, name)
            )
        now = getattr(section, key)
        if is_dataclass(now):
            if not isinstance(value, Mapping):
                raise RegardError(f"[{key}] must be a table of settings, but it is {value!r}")
            new[key] = change(now, value, f"{key}.")
        else:
            new[key] = _fitting(f"{name}{key}", value, known[key])
    return replace(section, **new)  # type: ignore[type-var]


def _named(known: Mapping[str, Any], name: str) -> list[str]:
    return [f"{name}{key}" for key in known]


def _fitting(name: str, value: Any, wanted: Any) -> Any:
    """Give the value as the type that the setting has, or say what it must be."""
    if get_origin(wanted) is Literal:
        if value in get_args(wanted):
            return value
        raise unknown_name(f"choice for {name}", str(value), get_args(wanted))
    if get_origin(wanted) is UnionType:
        if value is None or value == "none":
            return None
        return _fitting(name, value, next(t for t in get_args(wanted) if t is not NoneType))
    if get_origin(wanted) is tuple:
        if isinstance(value, list | tuple) and len(value) == len(get_args(wanted)):
            return tuple(
                _fitting(name, *pair) for pair in zip(value, get_args(wanted), strict=True)
            )
        raise RegardError(f"{name} must be {len(get_args(wanted))} numbers, but it is {value!r}")
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise RegardError(f"{name} must be {_WORDS[wanted]}, but it is {value!r}")
    return value


_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}
