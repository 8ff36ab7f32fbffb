"""How well runs translate: rows for RESULTS.md, each with all it takes to make it again.

python bench/quality.py RUN SOURCE REFERENCE [RUN SOURCE REFERENCE ...]
"""

import argparse
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard import presets
from regard.config import RunConfig
from regard.data import read_pairs
from regard.decoding import translate
from regard.evaluation import metrics
from regard.runs import Run, RunFolder, load
from regard.training import defaults

HEAD = """\
| run | BLEU | signature | seed | minutes | weights | command |
|---|---|---|---|---|---|---|"""


def row(run: Run, source: Path, reference: Path) -> str:
    """Translate the sources as the run's settings say, and write the row."""
    pairs = list(read_pairs([source, reference]))
    found = translate(
        run.model, run.tokenizers, [pair.source for pair in pairs], run.settings.search
    )
    references = [pair.target for pair in pairs]
    texts, chinese = [best[0].text for best in found], metrics.is_chinese(references)
    bleu = next(
        s for s in metrics.corpus_scores(texts, references, chinese=chinese) if s.name == "BLEU"
    )
    weights = sum(weight.numel() for weight in run.model.parameters())
    cells = (
        run.name,
        f"{bleu.value:.2f} ± {bleu.interval:.2f}",
        f"`{bleu.signature}`".replace("|", r"\|"),  # which would end the cell
        run.settings.train.seed,
        f"{seconds(run.folder) / 60:.0f}",
        f"{weights:,}",
        f"`{command(run)}`",
    )
    return f"| {' | '.join(map(str, cells))} |"


def seconds(folder: RunFolder) -> float:
    """Give how long the training took, by the last line of its log that says so."""
    entries = (json.loads(line) for line in folder.log.read_text(encoding="utf-8").splitlines())
    return max((entry["seconds"] for entry in entries if "seconds" in entry), default=0.0)


def command(run: Run) -> str:
    """Write the command that makes such a run: files by name, the nearest preset, the rest set."""
    _, origin = run.folder.read_settings()
    names = [Path(name).name for name in origin["texts"]]
    parts = len(origin["fingerprints"])  # training pairs and, if given, those to validate with
    train, valid = names[: len(names) // parts], names[len(names) // parts :]
    known = {None: {}, **{name: presets.read(name) for name in presets.names()}}
    rest = {
        name: list(_differences(origin["pairs"], changes, run.settings))
        for name, changes in known.items()
    }
    preset = min(rest, key=lambda name: len(rest[name]))
    words = ["regard", "train", *train]
    words += [word for name in valid for word in ("--valid", name)]
    words += ["--preset", preset] if preset else []
    words += [word for setting in rest[preset] for word in ("--set", setting)]
    return shlex.join([*words, "--out", run.name])


def _differences(pairs: int, preset: Mapping[str, Any], settings: RunConfig) -> Iterator[str]:
    """Give what must be set after the defaults for so many pairs, and a preset."""
    base = asdict(RunConfig.from_dict(defaults.defaults_for_size(pairs)).update(preset))
    for section, keys in asdict(settings).items():
        for key, value in keys.items():
            if value != base[section][key]:
                text = json.dumps(value)  # which TOML reads, but for none
                yield f"{section}.{key}={'none' if value is None else text}"


def main() -> None:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", metavar="RUN SOURCE REFERENCE")
    paths = parser.parse_args().paths
    if len(paths) % 3:
        parser.error(f"each run needs a source and a reference, but there are {len(paths)} paths")
    print(HEAD)
    for folder, source, reference in zip(*[iter(paths)] * 3, strict=True):
        print(row(load(folder), source, reference), flush=True)


if __name__ == "__main__":
    main()
