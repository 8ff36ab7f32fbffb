"""Make the model that the package ships: train on the phrasebook, and export it in float16.

    python tools/demo_model.py [--run FOLDER] [--steps N] [--seed N] [--out FOLDER]

An existing or interrupted run folder is resumed. The export has settings, tokenizers, parameters,
training log and model card, in less than 2 MB; each file has its checksum. The default seed is the
one of the first four whose best head has the lowest alignment error rate.
"""

import argparse
import shutil
from pathlib import Path

import torch

from regard.data import Tokenizers
from regard.data.phrasebook import load_phrasebook
from regard.demo import train_demo
from regard.evaluation import bleu
from regard.runs import DEMO_MODEL, Run, RunFolder, load, parameters

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "src" / "regard" / "runs" / "pretrained" / DEMO_MODEL
STEPS, SEED = 800, 2
MAX_BYTES = 2_000_000


def main() -> None:
    """Train, export, and report the quality and the size of what was written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, default=Path("demo-model-run"), help="training run")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    run = train_demo(options.run, steps=options.steps, seed=options.seed)
    export(run.folder, options.out)
    size = sum(path.stat().st_size for path in options.out.iterdir())
    # with torch: another engine would keep its converted model in the folder
    before, after = score_test_set(run), score_test_set(load(options.out, engine="torch"))
    print(f"wrote {options.out}: {size:,} bytes, test BLEU {after:.2f} (float32: {before:.2f})")
    if size > MAX_BYTES:
        raise SystemExit(f"the export must have at most {MAX_BYTES:,} bytes")


def export(run: RunFolder, out: Path) -> None:
    """Copy a finished run without checkpoints and data, its parameters rounded to float16."""
    out.mkdir(parents=True, exist_ok=True)
    target = RunFolder(out)
    for source, copy in (
        (run.settings, target.settings),
        (run.tokenizer, target.tokenizer),
        (run.log, target.log),
    ):
        shutil.copyfile(source, copy)
    card = run.model_card.read_text(encoding="utf-8")
    card = card.replace(f"# {run.path.resolve().name}\n", f"# {out.name}\n", 1)
    card = card.replace(f"regard translate {run.path} ", f"regard translate {out.name} ")
    target.model_card.write_text(card, encoding="utf-8")
    tensors, about = parameters.load(run.model)
    rounded = {
        name: tensor.half() if tensor.dtype == torch.float32 else tensor
        for name, tensor in tensors.items()
    }
    identity = run.identify(run.model, Tokenizers.load(run.tokenizer))
    parameters.save(target.model, rounded, about, identity)


def score_test_set(run: Run) -> float:
    """Return the BLEU on the phrasebook's test pairs."""
    pairs = load_phrasebook("fr", train=0).test
    translations = run.translate([pair.source for pair in pairs])
    return bleu([one.text for one in translations], [pair.target for pair in pairs])


if __name__ == "__main__":
    main()
