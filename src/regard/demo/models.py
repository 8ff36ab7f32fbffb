"""The demo's models: how they are trained on the phrasebook, and the cache of trained ones."""

import json
import shutil
from collections.abc import Collection
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from regard import __version__
from regard._support import user_cache
from regard.data import Corpus
from regard.data.phrasebook import Language, Phrasebook, load_phrasebook
from regard.errors import RegardError, unknown_name
from regard.runs import DEMO_MODEL, Run, RunFolder, find_run, load, parameters
from regard.training import train

LANGUAGES = {"fr": "French", "zh": "Chinese"}

COMMON: dict[str, Any] = {
    "data": {"vocab_size": 2250},
    "train": {
        "batch_tokens": 1024,
        "warmup": 60,
        "schedule": "cosine",
        "average_checkpoints": 1,
        "validate_every": 300,
        "patience": 0,
        "snapshots": True,
    },
}
RECURRENT = {
    "kind": "recurrent",
    "score": "additive",
    "use_attention": True,
    "layers": 1,
    "width": 128,
    "dropout": 0.0,
}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {
        "model": {
            "kind": "transformer",
            "layers": 2,
            "width": 128,
            "ffn_width": 256,
            "dropout": 0.0,
        },
        "train": {"optimizer": "muon", "betas": [0.9, 0.999], "learning_rate": 6e-3},
    },
    "bahdanau": {"model": RECURRENT, "train": {"learning_rate": 5e-3}},
    "no_attention": {
        "model": {**RECURRENT, "use_attention": False},
        "train": {"learning_rate": 5e-3},
    },
}
"""The settings of each model, by name."""

STEPS = {"transformer": 800, "bahdanau": 800, "no_attention": 800}
"""Optimizer steps of each model: about 90 seconds on two quiet cores."""

MIN_BLEU = {"transformer": 90.0, "bahdanau": 85.0, "no_attention": 10.0}
"""BLEU on the validation pairs below which a model is not kept for lessons."""


def train_demo(
    out: Path,
    to: str = "fr",
    model: str = "transformer",
    *,
    steps: int | None = None,
    minutes: float | None = None,
    seed: int = 0,
    book: Phrasebook | None = None,
) -> Run:
    """Train one of the demo's models on the phrasebook, or resume its training.

    The number of steps is fixed, so that quality does not depend on how fast or busy the machine
    is.

    Args:
        out: the run folder.
        to: target language, "fr" or "zh".
        model: a key of `MODELS`.
        steps: optimizer steps; by default those of `STEPS`.
        minutes: a time limit instead.
        seed: of initialization, batches and dropout.
        book: a smaller phrasebook to train on; by default the whole one.

    Returns:
        The trained run.

    Raises:
        RegardError: if the language or the model is unknown.
    """
    check_demo_names(to, model)
    book = load_phrasebook(cast(Language, to)) if book is None else book
    training, validation = ([pair.to_pair() for pair in part] for part in (book.train, book.valid))
    train(
        Corpus.from_pairs(f"phrasebook {to}, training", training, dataset_id(to)),
        out,
        valid=Corpus.from_pairs(f"phrasebook {to}, validation", validation),
        settings=[*_settings(model, steps), {"train": {"minutes": minutes, "seed": seed}}],
    )
    return load(out)


def dataset_id(language: str) -> dict[str, str]:
    """Return the identity of the phrasebook's training pairs, as settings.json records it."""
    return {"name": "phrasebook", "language": language, "split": "train"}


def load_or_train(
    to: str = "fr",
    model: str = "transformer",
    *,
    steps: int | None = None,
    snapshots: bool = False,
    near: Path = Path("demo"),
) -> Run:
    """Load a trained model of the demo, or train it once and cache it.

    In this order: the model that the package ships, a run of the demo nearby, and the user's cache
    folder. The last two must have been trained with these settings and steps, and reach `MIN_BLEU`.

    Args:
        to: target language, "fr" or "zh".
        model: a key of `MODELS`.
        steps: optimizer steps; by default those of `STEPS`.
        snapshots: whether parameters during training are needed, which the package does not ship.
        near: a run folder to use, if it has this model.

    Returns:
        The trained run.

    Raises:
        RegardError: if the language or the model is unknown, or the trained model is not good
            enough to keep.
    """
    folder = find_cached(to, model, steps=steps, snapshots=snapshots, near=near)
    if folder is not None:
        return load(folder)
    cached = _cached_run(to, model, steps)
    if cached.exists() and not _is_readable(cached):
        shutil.rmtree(cached)  # damaged, or of another format version
    run = train_demo(cached, to, model, steps=steps)
    score = _validation_bleu(run.folder)
    if score < MIN_BLEU[model]:
        shutil.rmtree(cached)
        raise RegardError(
            f"the model {model!r} must reach BLEU {MIN_BLEU[model]:g} on the validation pairs to "
            f"be kept, but it reached {score:.1f}"
        )
    return run


def find_cached(
    to: str = "fr",
    model: str = "transformer",
    *,
    steps: int | None = None,
    snapshots: bool = False,
    near: Path = Path("demo"),
) -> Path | None:
    """Return the folder from which `load_or_train` would load, or None if it would train."""
    check_demo_names(to, model)
    if (to, model) == ("fr", "transformer") and not snapshots:
        return find_run(DEMO_MODEL)
    folders = (near, _cached_run(to, model, steps))
    return next((folder for folder in folders if _has_model(folder, to, model, steps)), None)


def version_cache_folder() -> Path:
    """Return the folder of this version's cache."""
    return user_cache.cache_folder() / __version__


def check_demo_names(to: str, model: str, models: Collection[str] = MODELS.keys()) -> None:
    """Raise RegardError if a language or a model is unknown."""
    if model not in models:
        raise unknown_name("model of the demo", model, models)
    if to not in LANGUAGES:
        raise unknown_name("language of the phrasebook", to, LANGUAGES)


def _settings(model: str, steps: int | None) -> list[dict[str, Any]]:
    return [COMMON, MODELS[model], {"train": {"steps": steps or STEPS[model]}}]


def _cached_run(to: str, model: str, steps: int | None) -> Path:
    """Return the folder of a model in the cache, named by a digest of what it is trained with."""
    digest = sha256(json.dumps(_settings(model, steps), sort_keys=True).encode())
    for suffix in ("en", to):
        digest.update(files("regard.data.phrasebook").joinpath(f"en-{to}.{suffix}.gz").read_bytes())
    return version_cache_folder() / f"{to}-{model}-{digest.hexdigest()[:12]}"


def _is_readable(path: Path) -> bool:
    """Return whether the settings of a run can be read, so that its training can be resumed."""
    try:
        RunFolder(path).read_settings()
    except RegardError:
        return False
    return True


def _has_model(path: Path, to: str, model: str, steps: int | None) -> bool:
    """Return whether a folder has this model, trained to its end and good enough."""
    folder = RunFolder(path)
    try:
        config, origin = folder.read_settings()
        expected = config
        for update in _settings(model, steps):
            expected = expected.update(update)
        return (
            folder.model_card.exists()  # written last
            and config == expected
            and (config.train.minutes, config.train.seed) == (None, 0)
            and origin.get("dataset") == dataset_id(to)
            and _validation_bleu(folder) >= MIN_BLEU[model]
        )
    except RegardError:
        return False


def _validation_bleu(folder: RunFolder) -> float:
    """Return the BLEU that the parameter file records."""
    return float(parameters.load(folder.model)[1].get("validation_bleu", 0.0))
