"""What `train` accepts: corpora as files, pairs or iterators, and settings from several sources."""

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard import presets
from regard._support.files import wrap_os_errors
from regard._support.text import shorten
from regard.config import RunConfig
from regard.data import Corpus, FilePath, Pair
from regard.errors import RegardError, wrong_type
from regard.training.callbacks import Callback

ALIGNMENT_LOSS_WEIGHT = 0.05  # of guided alignment, when a file of alignments is given

Row = Sequence[str] | Pair | NDArray[Any]
"""A source and its target; further columns are ignored."""

CorpusLike = Corpus | FilePath | Sequence[FilePath] | Iterable[Row]
"""A TSV file, two parallel files, sentence pairs, or a `Corpus`."""

SettingsLike = RunConfig | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A whole config, or settings `{section: {key: value}}`; of several, later ones win."""


def to_corpus(corpus: CorpusLike, stack: ExitStack, alignments: FilePath | None = None) -> Corpus:
    """Return a corpus that can be read repeatedly.

    Args:
        corpus: files, pairs or a corpus. Pairs that can be read only once, such as those of a
            generator, are written to a temporary file.
        stack: removes the temporary file.
        alignments: a file of word alignments, if the corpus is files.

    Raises:
        RegardError: if alignments do not belong to files.
        TypeError: if the corpus is none of these.
    """
    if paths := _paths(corpus):
        return Corpus.from_files(paths, None if alignments is None else Path(alignments))
    if alignments is not None:
        raise RegardError(
            "alignments= is a file that belongs to files of pairs; other pairs carry their links: "
            "Pair(source, target, links)"
        )
    if isinstance(corpus, Corpus):
        return corpus
    if not isinstance(corpus, Iterable) or isinstance(corpus, bytes | Mapping):
        raise wrong_type("corpus", "a file, two parallel files or pairs of strings", corpus)
    if isinstance(corpus, Iterator):
        return Corpus(("pairs",), _spool(_check_pairs(corpus), stack))
    return Corpus(("pairs",), lambda: _check_pairs(corpus))


def _paths(corpus: CorpusLike) -> list[Path]:
    """Return the files that are given; none if it is something else."""
    if isinstance(corpus, str | os.PathLike):
        return [Path(corpus)]
    paths = corpus if isinstance(corpus, Sequence) else []
    is_file = [isinstance(path, str | os.PathLike) for path in paths]
    return [Path(path) for path in paths] if all(is_file) else []


def _check_pairs(pairs: Iterable[Any]) -> Iterator[Pair]:
    """Yield pairs of strings as `Pair`, without white space around them as files give them."""
    for number, pair in enumerate(pairs):
        if isinstance(pair, Pair) and pair.links:
            yield pair  # the links are character spans
            continue
        # a row of a table of numpy or pandas is no Sequence
        is_row = isinstance(pair, Sequence | np.ndarray) and not isinstance(pair, str)
        if not is_row or len(pair) < 2 or not all(isinstance(text, str) for text in pair[:2]):
            raise TypeError(
                "corpus must be pairs of strings (source, target), but pair "
                f"{number} is {shorten(pair)}"
            )
        yield Pair(pair[0].strip(), pair[1].strip())


def to_folder(out: object) -> Path:
    """Return the path of the run folder; raise TypeError if it is none."""
    if not isinstance(out, str | os.PathLike):
        raise wrong_type("out", "the path of a run folder", out)
    return Path(out)


def check_callbacks(callbacks: object) -> None:
    """Raise TypeError if it is not a list of `Callback` objects."""
    if not isinstance(callbacks, list | tuple):
        raise wrong_type("callbacks", "a list of Callback objects", callbacks)
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise wrong_type(
                "each callback", "an object of a subclass of regard.Callback", callback
            )


def _spool(pairs: Iterator[Pair], stack: ExitStack) -> Callable[[], Iterator[Pair]]:
    """Write pairs to a temporary file; return what reads them again."""
    path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="regard-"))) / "pairs.jsonl"
    with wrap_os_errors(path), path.open("w", encoding="utf-8") as file:
        for pair in pairs:
            file.write(json.dumps(pair) + "\n")

    def read() -> Iterator[Pair]:
        with path.open(encoding="utf-8") as file:
            for line in file:
                source, target, links = json.loads(line)
                yield Pair(source, target, tuple((tuple(a), tuple(b)) for a, b in links))

    return read


def collect_settings(
    settings: SettingsLike,
    *,
    preset: str | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    processes: int | None = None,
    has_alignments: bool = False,
) -> list[Mapping[str, Any]]:
    """Return the settings of all arguments in order: later ones override earlier ones.

    Raises:
        RegardError: if there is no such preset.
        TypeError: if the settings are no dicts.
    """
    if isinstance(settings, RunConfig):
        settings = settings.to_dict()
    several = [settings] if isinstance(settings, Mapping) else settings
    if not isinstance(several, list | tuple) or not all(isinstance(s, Mapping) for s in several):
        raise wrong_type("settings", "a dict {section: {key: value}} or a RunConfig", settings)
    collected: list[Mapping[str, Any]] = []
    if has_alignments:
        collected.append({"train": {"alignment_loss_weight": ALIGNMENT_LOSS_WEIGHT}})
    if preset is not None:
        collected.append(presets.read(preset))
    collected += several
    arguments = {"minutes": minutes, "steps": steps, "processes": processes}
    given = {name: value for name, value in arguments.items() if value is not None}
    return [*collected, {"train": given}] if given else collected
