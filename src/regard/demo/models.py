"""The demo's models: how they are trained on the phrasebook, and the cache of trained ones."""

import os
from pathlib import Path
from typing import Any, cast

from regard import __version__
from regard.data import Corpus
from regard.data.phrasebook import Language, load_phrasebook
from regard.errors import RegardError, unknown_name
from regard.runs import Run, RunFolder, load
from regard.training import train

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
    """Train one of the demo's models on the phrasebook, or resume its training.

    Args:
        out: the run folder.
        to: target language, "fr" or "zh".
        model: a key of `MODELS`.
        minutes: training time.

    Returns:
        The trained run.

    Raises:
        RegardError: if the language or the model is unknown.
    """
    check_names(to, model)
    book = load_phrasebook(cast(Language, to))
    training, validation = ([pair.to_pair() for pair in part] for part in (book.train, book.valid))
    train(
        Corpus.from_pairs(f"phrasebook {to}, training", training, dataset_id(to)),
        out,
        valid=Corpus.from_pairs(f"phrasebook {to}, validation", validation),
        updates=[COMMON, MODELS[model], {"train": {"minutes": minutes}}],
    )
    return load(out)


def dataset_id(language: str) -> dict[str, str]:
    """Return the identity of the phrasebook's training pairs, as settings.json records it."""
    return {"name": "phrasebook", "language": language, "split": "train"}


def load_or_train(
    to: str = "fr", model: str = "transformer", minutes: float = 1.5, near: Path = Path("demo")
) -> Run:
    """Load a trained model of the demo, or train it once and cache it.

    The cache is in the user's cache folder, separate for each version and training time.

    Args:
        to: target language, "fr" or "zh".
        model: a key of `MODELS`.
        minutes: training time.
        near: a run folder to use instead, if it has this model, whatever its training time.

    Returns:
        The trained run.

    Raises:
        RegardError: if the language or the model is unknown.
    """
    folder = find_cached(to, model, minutes, near)
    if folder is not None:
        return load(folder)
    return train_demo(_cached_run(to, model, minutes), to, model, minutes)


def find_cached(
    to: str = "fr", model: str = "transformer", minutes: float = 1.5, near: Path = Path("demo")
) -> Path | None:
    """Return the folder from which `load_or_train` would load, or None if it would train."""
    check_names(to, model)
    folders = (near, _cached_run(to, model, minutes))
    return next((folder for folder in folders if _has_model(folder, to, model)), None)


def cache_folder() -> Path:
    """Return the folder of this version's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "regard" / __version__


def check_names(to: str, model: str) -> None:
    """Raise RegardError if a language or a model is unknown."""
    if model not in MODELS:
        raise unknown_name("model of the demo", model, MODELS)
    if to not in LANGUAGES:
        raise unknown_name("language of the phrasebook", to, LANGUAGES)


def _cached_run(to: str, model: str, minutes: float) -> Path:
    return cache_folder() / f"{to}-{model}-{minutes:g}"


def _has_model(path: Path, to: str, model: str) -> bool:
    """Return whether a folder has this model of the demo, and its training has finished."""
    folder = RunFolder(path)
    try:
        settings, origin = folder.read_settings()
    except RegardError:
        return False
    defaults = {"layers": 2, "use_attention": True, "kind": "transformer"}
    expected = defaults | MODELS[model]["model"]
    return (
        all(getattr(settings.model, name) == value for name, value in expected.items())
        and origin.get("dataset") == dataset_id(to)
        and folder.model_card.exists()  # written last
    )
