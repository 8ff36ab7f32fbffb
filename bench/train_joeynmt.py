"""A worker of bench/train.py: JoeyNMT's own TrainManager, in turns.

    python bench/train_joeynmt.py FOLDER

The folder has train.source, train.target (token ids as words), vocabulary.txt and settings.json.
"""

import importlib.metadata
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from turns import Turns

# JoeyNMT 2.3 imports a backport of what is in the standard library since Python 3.8
sys.modules.setdefault("importlib_metadata", importlib.metadata)

from joeynmt.batch import Batch  # noqa: E402
from joeynmt.config import parse_global_args, set_validation_args  # noqa: E402
from joeynmt.prediction import prepare  # noqa: E402
from joeynmt.training import TrainManager  # noqa: E402

NEVER = 10**9


def joeynmt_config(folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe in JoeyNMT's settings; everything else is at its defaults."""
    side = {
        "embeddings": {
            "embedding_dim": settings["width"],
            "scale": True,
            "dropout": settings["dropout"],
        },
        "type": "transformer",
        "hidden_size": settings["width"],
        "ff_size": settings["ffn_width"],
        "num_layers": settings["layers"],
        "num_heads": settings["heads"],
        "dropout": settings["dropout"],
        "layer_norm": "post",
    }
    language = {"level": "word", "voc_file": str(folder / "vocabulary.txt"), "max_length": NEVER}
    return {
        "name": "tiny",
        "model_dir": str(folder),
        "use_cuda": False,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "train"),  # required, but never read
            "src": {"lang": "source", **language},
            "trg": {"lang": "target", **language},
        },
        "training": {
            "normalization": "tokens",
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "scheduling": "warmupinversesquareroot",
            "learning_rate": settings["learning_rate"],
            "learning_rate_warmup": settings["warmup"],
            "learning_rate_min": 0.0,
            "clip_grad_norm": settings["max_grad_norm"],
            "label_smoothing": settings["label_smoothing"],
            "batch_type": "token",
            "batch_size": settings["batch_tokens"],
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


class TurnTakingManager(TrainManager):
    """JoeyNMT's own loop; it reports each step when the next one begins."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.turns: Turns | None = None
        self.last_step = 0, 0  # tokens, positions

    def _train_step(self, batch: Batch) -> tuple[float, int]:
        if self.turns is None:
            self.turns = Turns()
        elif not self.turns.step(*self.last_step):
            os._exit(0)  # the loop's own end would write a checkpoint
        self.last_step = batch.ntokens, batch.trg.numel()
        return super()._train_step(batch)


def main() -> None:
    """Train in turns."""
    logging.disable(logging.INFO)
    folder = Path(sys.argv[1])
    settings = json.loads((folder / "settings.json").read_text())
    args = parse_global_args(joeynmt_config(folder, settings))
    model, data, _, _ = prepare(args, rank=0, mode="train")
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"JoeyNMT: {count:,} parameters", file=sys.stderr)
    manager = TurnTakingManager(
        rank=0,
        model=model,
        model_dir=args.model_dir,
        device=args.device,
        autocast=args.autocast,
        seed=args.seed,
        train_args=args.train,
        dev_args=set_validation_args(args.test),
    )
    manager.train_and_validate(train_data=data, valid_data=data)


if __name__ == "__main__":
    main()
