"""Training: from sentence pairs to a run folder with a translation model.

How the files work together:

- `trainer` holds `train`, which sets up a run, trains it and returns it, and `Trainer`, one start
  of a run: it builds model, optimizer and callbacks, and finishes the run.
- `setup` resolves the settings (`defaults` by size of the corpus), claims the folder, trains the
  tokenizers, holds out validation pairs and encodes everything.
- `loop` is the training loop: batch, loss, backward, gradient clipping, optimizer step, log,
  validation with early stopping, checkpoint. Its counters are a `TrainState` (`state`); whatever
  observes it is a `Callback` (`callbacks`, `logging`).
- `objective` is the loss: label-smoothed cross-entropy with teacher forcing
  (`fused_cross_entropy`), plus guided alignment. `optim` has AdamW, Muon and the learning rate.
- `validation` measures loss and BLEU; `checkpoint` is what a run resumes from; `selection` averages
  checkpoints; `model_card` writes the README of a run.
- `distributed` wraps torch.distributed (all-reduce, broadcast, barrier), `signals` handles Ctrl-C,
  `timing` estimates how long a run takes.
"""

from regard.training.callbacks import Callback, StepResult
from regard.training.checkpoint import Checkpoints
from regard.training.setup import TrainingData
from regard.training.signals import Interrupted
from regard.training.state import TrainState
from regard.training.trainer import Trainer, train
from regard.training.validation import ValidationResult

__all__ = [
    "Callback",
    "Checkpoints",
    "Interrupted",
    "StepResult",
    "TrainState",
    "Trainer",
    "TrainingData",
    "ValidationResult",
    "train",
]
