"""Follow a training in TensorBoard: a callback of a few lines.

pip install tensorboard
python examples/tensorboard_logger.py
tensorboard --logdir tensorboard-run
"""

from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

import regard
from regard.data.phrasebook import load_phrasebook
from regard.training import StepResult, TrainState, ValidationResult

SETTINGS = {
    "data": {"vocab_size": 400, "validation_pairs": 20},
    "model": {"width": 32, "layers": 1, "heads": 2, "ffn_width": 64},
    "train": {"batch_tokens": 512, "warmup": 10, "validate_every": 20},
}


class TensorBoardLogger(regard.Callback):
    """Writes losses, the learning rate and BLEU as TensorBoard's scalars.

    Args:
        folder: where TensorBoard finds them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writer: SummaryWriter | None = None

    def on_start(self, state: TrainState) -> None:
        """Open the log; a resumed run replaces what was logged after its checkpoint."""
        self.writer = SummaryWriter(str(self.folder), purge_step=state.step + 1)

    def on_step(self, state: TrainState, result: StepResult) -> None:
        """Log the loss and the learning rate."""
        self._add("loss/training", result.loss, state)
        self._add("learning rate", result.learning_rate, state)

    def on_validation(self, state: TrainState, result: ValidationResult) -> None:
        """Log the validation loss, and BLEU if it is measured."""
        self._add("loss/validation", result.loss, state)
        if result.bleu is not None:
            self._add("BLEU", result.bleu, state)

    def on_checkpoint(self, state: TrainState) -> None:
        """Write what is logged so far."""
        assert self.writer is not None
        self.writer.flush()

    def on_end(self, state: TrainState) -> None:
        """Close the log, also after an interruption."""
        assert self.writer is not None
        self.writer.close()

    def _add(self, name: str, value: float, state: TrainState) -> None:
        assert self.writer is not None
        self.writer.add_scalar(name, value, state.step)


def main() -> None:
    """Train a small translator on the phrasebook, and log it."""
    out = Path("tensorboard-run")
    book = load_phrasebook("fr", train=400, valid=20, test=20)
    pairs = [(pair.source, pair.target) for pair in book.train]
    logger = TensorBoardLogger(out / "tensorboard")
    regard.train(pairs, out, steps=40, settings=SETTINGS, callbacks=[logger])
    print(f"tensorboard --logdir {out}")


if __name__ == "__main__":
    main()
