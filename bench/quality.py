"""BLEU of trained runs: rows for RESULTS.md, each with the command that reproduces it.

    python bench/quality.py RUN SOURCE REFERENCE [RUN SOURCE REFERENCE ...]
    python bench/quality.py --smoke

--smoke takes seconds: it trains a tiny run on made-up sentences, and evaluates it on them.
"""

import argparse
import json
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

from regard import presets
from regard.config import RunConfig
from regard.data import read_pairs
from regard.decoding import translate
from regard.evaluation import corpus_scores, is_chinese
from regard.runs import Run, RunFolder, load
from regard.training import train
from regard.training.arguments import ALIGNMENT_LOSS_WEIGHT
from regard.training.defaults import defaults_for_size
from train import SMOKE_SETTINGS, write_smoke_data

HEAD = """\
| run | BLEU | signature | seed | minutes | parameters | command |
|---|---|---|---|---|---|---|"""
SMOKE_STEPS = {"train": {"steps": 3, "warmup": 1}, "search": {"beam_size": 1}}


def row(run: Run, source: Path, reference: Path) -> str:
    """Translate a test set with the run's settings; return the row of its BLEU."""
    pairs = list(read_pairs([source, reference]))
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    results = translate(run.model, run.tokenizers, sources, run.settings.search)
    translations = [best[0].text for best in results]
    bleu, _ = corpus_scores(translations, references, chinese=is_chinese(references))
    interval = "" if bleu.interval is None else f" ± {bleu.interval:.2f}"
    cells = (
        run.name,
        f"{bleu.value:.2f}{interval}",
        f"`{bleu.signature}`".replace("|", r"\|"),  # a bare | would end the cell
        run.settings.train.seed,
        f"{training_seconds(run.folder) / 60:.0f}",
        f"{sum(parameter.numel() for parameter in run.model.parameters()):,}",
        f"`{command(run)}`",
    )
    return f"| {' | '.join(map(str, cells))} |"


def training_seconds(folder: RunFolder) -> float:
    """Return how long the run was trained, by its log."""
    return max((entry["seconds"] for entry in folder.read_log() if "seconds" in entry), default=0.0)


def command(run: Run) -> str:
    """Return the command that trains such a run: files by name, the nearest preset, the rest."""
    _, origin = run.folder.read_settings()
    valid, alignments = origin["valid"], origin["alignments"]
    pairs = origin["texts"][: len(origin["texts"]) - len(valid) - bool(alignments)]
    base = RunConfig.from_dict(defaults_for_size(origin["pairs"]))
    if alignments:  # as --alignments does
        base = base.update({"train": {"alignment_loss_weight": ALIGNMENT_LOSS_WEIGHT}})
    known = {None: {}, **{name: presets.read(name) for name in presets.names()}}
    differences = {
        name: list(_differences(base.update(preset), run.settings))
        for name, preset in known.items()
    }
    nearest = min(differences, key=lambda name: len(differences[name]))
    words = ["regard", "train", *(Path(name).name for name in pairs)]
    words += [word for name in valid for word in ("--valid", Path(name).name)]
    words += ["--alignments", Path(alignments).name] if alignments else []
    words += ["--preset", nearest] if nearest else []
    words += [word for setting in differences[nearest] for word in ("--set", setting)]
    return shlex.join([*words, "--out", run.name])


def _differences(base: RunConfig, config: RunConfig) -> Iterator[str]:
    """Yield the assignments that turn one configuration into another."""
    known = base.to_dict()
    for section, settings in config.to_dict().items():
        for key, value in settings.items():
            if value != known[section][key]:
                text = "none" if value is None else json.dumps(value)  # JSON values are TOML
                yield f"{section}.{key}={text}"


def smoke() -> None:
    """Train a tiny run, and print its row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_smoke_data(folder)
        files = [folder / "train.en.gz", folder / "train.de.gz"]
        run = train(files, folder / "run", settings=[SMOKE_SETTINGS, SMOKE_STEPS])
        print(row(run, *files))


def main() -> None:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="*", metavar="RUN SOURCE REFERENCE")
    parser.add_argument("--smoke", action="store_true", help="a tiny run on made-up data")
    options = parser.parse_args()
    if len(options.paths) % 3 or not (options.paths or options.smoke):
        parser.error(f"each run needs a source and a reference, but there are {options.paths}")
    print(HEAD)
    if options.smoke:
        smoke()
    for folder, source, reference in zip(*[iter(options.paths)] * 3, strict=True):
        print(row(load(folder), source, reference), flush=True)


if __name__ == "__main__":
    main()
