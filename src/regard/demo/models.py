"""The demo's translators: what they learn from the phrasebook, and where a trained one is kept."""

import os
from pathlib import Path
from typing import Any, Literal, cast

from regard import __version__
from regard.data import Corpus
from regard.data.phrasebook import load_phrasebook
from regard.errors import RegardError, unknown_name
from regard.runs import Run, RunFolder, load
from regard.training import train

Language = Literal["fr", "zh"]
LANGUAGES = {"fr": "French", "zh": "Chinese"}

COMMON: dict[str, Any] = {
    "data": {"vocab_size": 2500},
    "train": {
        "batch_tokens": 1024,
        "warmup": 100,
        "schedule": "cosine",
        "average_checkpoints": 1,
        "validate_every": 400,
        "patience": 0,
        "snapshots": True,
    },
}
RECURRENT = {"kind": "recurrent", "score": "additive", "layers": 1, "width": 128, "dropout": 0.0}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {
        "model": {"layers": 2, "width": 128, "ffn_width": 256, "dropout": 0.0},
        "train": {"learning_rate": 3e-3},
    },
    "bahdanau": {"model": RECURRENT, "train": {"learning_rate": 5e-3}},
    "no_attention": {
        "model": {**RECURRENT, "use_attention": False},
        "train": {"learning_rate": 5e-3},
    },
}


def train_demo(out: Path, to: str = "fr", model: str = "transformer", minutes: float = 1.5) -> Run:
    """Train one of the models on the phrasebook, or go on; give it when it is trained."""
    check_choice(to, model)
    book = load_phrasebook(cast(Language, to))
    train(
        Corpus.from_pairs(
            f"phrasebook {to}, training", [pair.to_pair() for pair in book.train], dataset(to)
        ),
        out,
        valid=Corpus.from_pairs(
            f"phrasebook {to}, validation", [pair.to_pair() for pair in book.valid]
        ),
        updates=[COMMON, MODELS[model], {"train": {"minutes": minutes}}],
    )
    return load(out)


def dataset(language: str) -> dict[str, str]:
    """Return the identity of the phrasebook's training pairs, as settings.json records it."""
    return {"name": "phrasebook", "language": language, "split": "train"}


def load_or_train(
    to: str = "fr", model: str = "transformer", minutes: float = 1.5, near: Path = Path("demo")
) -> Run:
    """Give a trained translator: the demo's, if it is near, or one that is trained once and kept.

    It is kept in the user's cache, and trained again for another version or another time.
    """
    there = find_cached(to, model, minutes, near)
    return load(there) if there else train_demo(_place(to, model, minutes), to, model, minutes)


def find_cached(
    to: str = "fr", model: str = "transformer", minutes: float = 1.5, near: Path = Path("demo")
) -> Path | None:
    """Tell where a translator is that `load_or_train` need not train any more."""
    check_choice(to, model)
    places = (near, _place(to, model, minutes))
    return next((place for place in places if _knows(place, to, model)), None)


def _place(to: str, model: str, minutes: float) -> Path:
    return cache_folder() / f"{to}-{model}-{minutes:g}"


def cache_folder() -> Path:
    """Give the folder where this version keeps what it can make again."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "regard" / __version__


def check_choice(to: str, model: str) -> None:
    """Refuse what the phrasebook or the lesson does not know."""
    if model not in MODELS:
        raise unknown_name("model of the demo", model, MODELS)
    if to not in LANGUAGES:
        raise unknown_name("language of the phrasebook", to, LANGUAGES)


def _knows(place: Path, to: str, model: str) -> bool:
    """Tell whether a folder holds this very translator, trained to its end."""
    folder = RunFolder(place)
    try:
        settings, origin = folder.read_settings()
    except RegardError:
        return False
    wanted = {"layers": 2, "use_attention": True, "kind": "transformer"} | MODELS[model]["model"]
    return (
        all(getattr(settings.model, name) == value for name, value in wanted.items())
        and origin.get("dataset") == dataset(to)
        and folder.model_card.exists()
    )
