"""A worker of bench/train.py: JoeyNMT trains, by its own TrainManager, in turns.

    python bench/train_joeynmt.py FOLDER

The folder has train.source, train.target (tokens as words), vocabulary.txt and sizes.json.
"""

import importlib.metadata
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from turns import Turns

# JoeyNMT 2.3 asks for a package that does what the standard library does since Python 3.8
sys.modules.setdefault("importlib_metadata", importlib.metadata)

from joeynmt.batch import Batch  # noqa: E402
from joeynmt.config import parse_global_args, set_validation_args  # noqa: E402
from joeynmt.prediction import prepare  # noqa: E402
from joeynmt.training import TrainManager  # noqa: E402

NEVER = 10**9


def config(folder: Path, sizes: dict[str, Any]) -> dict[str, Any]:
    """Write the tiny recipe as JoeyNMT's settings; what is not named is its default."""
    side = {
        "embeddings": {"embedding_dim": sizes["width"], "scale": True, "dropout": sizes["dropout"]},
        "type": "transformer",
        "hidden_size": sizes["width"],
        "ff_size": sizes["hidden"],
        "num_layers": sizes["layers"],
        "num_heads": sizes["heads"],
        "dropout": sizes["dropout"],
        "layer_norm": "post",
    }
    language = {"level": "word", "voc_file": str(folder / "vocabulary.txt"), "max_length": NEVER}
    return {
        "name": "tiny",
        "model_dir": str(folder),
        "use_cuda": False,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "train"),  # asked for, and never read
            "src": {"lang": "source", **language},
            "trg": {"lang": "target", **language},
        },
        "training": {
            "normalization": "tokens",
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "scheduling": "warmupinversesquareroot",
            "learning_rate": sizes["rate"],
            "learning_rate_warmup": sizes["warmup"],
            "learning_rate_min": 0.0,
            "clip_grad_norm": sizes["clip"],
            "label_smoothing": sizes["smoothing"],
            "batch_type": "token",
            "batch_size": sizes["tokens"],
            "validation_freq": NEVER,
            "epochs": NEVER,
        },
        "testing": {},
        "model": {
            "initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": side,
            "decoder": side,
        },
    }


class Watched(TrainManager):
    """JoeyNMT's own loop, which tells of the step before as the next one begins."""

    def train_in_turns(self, data: Any) -> None:
        """Train until the turns end."""
        self.turns: Turns | None = None
        self.train_and_validate(train_data=data, valid_data=data)

    def _train_step(self, batch: Batch) -> tuple[float, int]:
        if self.turns is None:
            self.turns = Turns()
        elif not self.turns.step(*self.last):
            os._exit(0)  # the loop's own end would write a checkpoint
        self.last = batch.ntokens, batch.trg.numel()
        return super()._train_step(batch)


def main() -> None:
    """Train in turns."""
    logging.disable(logging.INFO)
    folder = Path(sys.argv[1])
    args = parse_global_args(config(folder, json.loads((folder / "sizes.json").read_text())))
    model, data, _, _ = prepare(args, rank=0, mode="train")
    weights = sum(weight.numel() for weight in model.parameters())
    print(f"JoeyNMT: {weights:,} weights", file=sys.stderr)
    manager = Watched(
        rank=0,
        model=model,
        model_dir=args.model_dir,
        device=args.device,
        autocast=args.autocast,
        seed=args.seed,
        train_args=args.train,
        dev_args=set_validation_args(args.test),
    )
    manager.train_in_turns(data)


if __name__ == "__main__":
    main()
