"""Processes of a run that `train` starts by itself, and the choice of their number.

The calling process is rank 0, which torch's elastic launcher would not allow: callbacks, notebooks,
Ctrl-C and the progress bar work as with one process, and a script needs no `__main__` guard. The
others (`worker`) are started early, so that importing torch overlaps with preparing the data, and
read everything from the run folder. A pipe to their stdin ties them to the calling process: it
starts them, and when it closes, for whatever reason, they exit.
"""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from torch import distributed

from regard._support.resources import usable_cores
from regard.config import RunConfig
from regard.models import count_parameters
from regard.training.distributed import Distributed, join_processes
from regard.training.network import LostProcessError

# The smallest share of a batch that pays. Measured with the defaults for 10,000 to 100,000 pairs: a
# step of 2,048, 1,024 and 512 tokens takes one process about 430, 290 and 210 ms of CPU time (once,
# beside other work); calls of many small operations and the optimizer are most of what remains.
MIN_SHARE_TOKENS = 512
MAX_PROCESSES = 16  # each holds the model and its optimizer state
# Starting the others takes some seconds of importing torch: about 10^12 operations of a small model
# are half a minute on one core, which does not gain that back.
MIN_TRAINING_FLOPS = 1e12
MIN_TRAINING_MINUTES = 0.5
EXIT_TIMEOUT_SECONDS = 10.0

# The worker gets the module search path of this process, which may find regard by it.
_START_WORKER = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n'); "
    "from regard.training.worker import main; main()"
)


def choose_processes(config: RunConfig) -> int:
    """Return how many processes pay for a training: one per core or per GPU, within limits.

    The rule does not measure anything: the same settings on the same host always give the same
    number, however busy it is. Fewer than one per core are chosen where a process's share of a
    batch would be too small, and one where the whole training is too short.
    """
    train = config.train
    if not distributed.is_available() or distributed.is_initialized() or not sys.executable:
        return 1
    if torch.cuda.is_available():
        return torch.cuda.device_count()
    if train.minutes is None:
        is_short = training_flops(config) < MIN_TRAINING_FLOPS
    else:
        is_short = train.minutes < MIN_TRAINING_MINUTES
    if is_short:
        return 1
    shares = train.batch_tokens // MIN_SHARE_TOKENS
    return max(min(usable_cores(), shares, MAX_PROCESSES), 1)


def training_flops(config: RunConfig) -> float:
    """Return about how many floating-point operations a whole training takes.

    Each token takes a multiplication and an addition with every parameter forward, and twice as
    many backward.
    """
    parameters = count_parameters(config.model, config.data.vocab_size)
    train = config.train
    tokens = train.steps * train.accumulation_steps * train.batch_tokens
    return 6.0 * parameters * tokens


class Workers:
    """The processes of rank 1 and above, started but waiting for `join`.

    Args:
        run: the run folder.
        processes: number of processes, the calling one included.
        folder: an empty folder for their rendezvous and their stderr.
    """

    def __init__(self, run: Path, processes: int, folder: Path) -> None:
        self.world_size = processes
        self.are_training = False  # until `join`, they have nothing to finish
        self._folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []
        for rank in range(1, processes):
            self._workers.append(self._start(run, rank))

    def _start(self, run: Path, rank: int) -> subprocess.Popen[bytes]:
        arguments = [run.absolute(), self._store, rank, self.world_size, "\n".join(sys.path)]
        with self._stderr(rank).open("wb") as stderr:
            return subprocess.Popen(
                [sys.executable, "-c", _START_WORKER, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C is for the calling process, which stops them all
            )

    @property
    def _store(self) -> Path:
        return self._folder / "store"

    def _stderr(self, rank: int) -> Path:
        return self._folder / f"stderr-{rank}.txt"

    @contextmanager
    def join(self) -> Iterator[Distributed]:
        """Form a group with all workers, now that the run folder is ready for them.

        Raises:
            LostProcessError: if a worker ended.
        """
        try:
            for worker in self._workers:
                assert worker.stdin is not None and worker.stdout is not None
                if not worker.stdout.readline():
                    raise LostProcessError
            self.are_training = True
            for worker in self._workers:
                assert worker.stdin is not None
                with suppress(BrokenPipeError):  # the group notices
                    worker.stdin.write(b"\n")
                    worker.stdin.flush()
            with join_processes(0, self.world_size, self._store) as group:
                yield group
        except LostProcessError as problem:
            raise LostProcessError(self._reason()) from problem

    def _reason(self) -> str:
        """Return how the first worker that ended did so, as far as it is known."""
        for rank, worker in enumerate(self._workers, start=1):
            with suppress(subprocess.TimeoutExpired):
                code = worker.wait(EXIT_TIMEOUT_SECONDS)
                if code < 0:
                    return f" (killed by {signal.Signals(-code).name})"
                lines = self._stderr(rank).read_text("utf-8", "replace").split("\n")
                last = next((line for line in reversed(lines) if line.strip()), "")
                if code and last:
                    return f" ({last.strip()})"
        return ""

    def close(self) -> None:
        """Let the workers exit; kill those that do not, or that still import torch."""
        for worker in self._workers:
            assert worker.stdin is not None and worker.stdout is not None
            with suppress(BrokenPipeError):
                worker.stdin.close()
        for worker in self._workers:
            if not self.are_training:
                worker.kill()
            try:
                worker.wait(EXIT_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()


@contextmanager
def start_workers(run: Path, processes: int) -> Iterator[Workers]:
    """Start all processes of a run but the calling one; they have exited at the end.

    Args:
        run: the run folder.
        processes: number of processes, the calling one included.
    """
    with tempfile.TemporaryDirectory(prefix="regard-") as folder:
        workers = Workers(run, processes, Path(folder))
        try:
            yield workers
        finally:
            workers.close()
