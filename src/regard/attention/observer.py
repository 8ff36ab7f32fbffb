"""Who is told of each attention as it happens: nobody, or `regard.watch`."""

from collections.abc import Callable
from typing import TypeVar

from regard.attention.call import AttentionCall

Outcome = TypeVar("Outcome")

present: Callable[[AttentionCall, Callable[[], object]], object] | None = None
"""Called in place of an attention, with the job and a function that does it; returns its result."""


def told(job: AttentionCall, run: Callable[[], Outcome]) -> Outcome:
    """Do what is to be done, with whoever is present looking on."""
    witness = present  # once: it may leave in another thread meanwhile
    return run() if witness is None else witness(job, run)  # type: ignore[return-value]
