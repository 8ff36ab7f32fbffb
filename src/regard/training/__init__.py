"""Training: from sentence pairs to a run folder with a translation model.

How the files work together:

- `trainer` holds `train`, which sets up a run, trains it and returns it, and `Trainer`, one start
  of a run: it builds model, optimizer and callbacks, and finishes the run. `arguments` turns what
  `train` accepts into a corpus and settings.
- `setup` scans the corpus, resolves the settings (`defaults` by its size) and claims the folder;
  `preparation` holds out validation pairs, trains the tokenizers and encodes everything.
- `loop` is the training loop: batch, loss, backward, gradient clipping, optimizer step, log,
  validation with early stopping, checkpoint. Its counters are a `TrainState` (`train_state`);
  whatever observes it is a `Callback` (`callbacks`, `logging`).
- `objective` is the loss: label-smoothed cross-entropy with teacher forcing
  (`fused_cross_entropy`), plus guided alignment. `optim` has AdamW, Muon and the learning rate.
- `validation` measures loss and BLEU; `checkpoint` is what a run resumes from;
  `checkpoint_averaging` selects the final parameters; `model_card` writes the README of a run.
- `sharding` splits model and optimizer over the processes (FSDP2).
- `launcher` chooses how many processes share the batches, and starts them; all but the first are
  `worker`s. `distributed` wraps torch.distributed (all-reduce, broadcast, barrier). Processes of
  torchrun meet in `rendezvous`, connect over `network`, and compare what they were started with
  in `agreement`. `signals` handles Ctrl-C, `timing` estimates how long a run takes; `plan` fits a
  run into a time limit.
"""

from regard.training.callbacks import Callback, StepResult
from regard.training.checkpoint import Checkpoints
from regard.training.preparation import TrainingData
from regard.training.signals import Interrupted
from regard.training.train_state import TrainState
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
