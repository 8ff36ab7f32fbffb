"""A process of rank 1 or above of a run; `launcher` starts it.

    main() with sys.argv[1:] = run folder, rendezvous file, rank, number of processes

It reads settings and encoded pairs from the run folder once a byte arrives on stdin, and exits when
stdin is closed.
"""

import os
import sys
from pathlib import Path
from threading import Thread

from regard._support.resources import keep_freed_memory
from regard.errors import RegardError
from regard.runs import RunFolder
from regard.training.distributed import join_processes
from regard.training.preparation import open_data
from regard.training.signals import Interrupted
from regard.training.timing import limit_threads
from regard.training.trainer import Trainer

STDIN, STDOUT, STDERR = 0, 1, 2


def main() -> None:
    """Wait until the data is ready, then train as one of the processes."""
    run, rendezvous, rank, world_size = sys.argv[1:]
    os.write(STDOUT, b"ready\n")
    os.dup2(STDERR, STDOUT)
    if not os.read(STDIN, 1):
        return
    Thread(target=_exit_at_end_of_stdin, daemon=True).start()
    folder = RunFolder(Path(run))
    config, _ = folder.read_settings()
    try:
        with (
            join_processes(int(rank), int(world_size), Path(rendezvous)) as group,
            limit_threads(config),
            keep_freed_memory(),
        ):
            with group.raise_together():
                data = open_data(folder, config)
            Trainer(folder, data, group).run()
    except Interrupted:
        pass
    except RegardError as problem:
        sys.exit(str(problem))


def _exit_at_end_of_stdin() -> None:
    """Exit when the process that started this one closes the pipe, or ends."""
    while os.read(STDIN, 1):
        pass
    os._exit(1)
