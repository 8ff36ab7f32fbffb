"""Work that nobody waits for any more stops at its next step."""

from threading import Event
from typing import Any

from torch import Tensor, nn

from regard.models.protocols import Looks, Past, Seq2SeqModel, longest


class Stopped(Exception):
    """Nobody waits for this work any more."""


class Stop:
    """A word from whoever waits to whoever works."""

    def __init__(self) -> None:
        self._said = Event()

    def say(self) -> None:
        """Tell the work to stop."""
        self._said.set()

    def check(self) -> None:
        """Stop here, if that was said."""
        if self._said.is_set():
            raise Stopped


class Stoppable(nn.Module):
    """A translator that can be stopped between two steps of a search; it shares the weights."""

    def __init__(self, model: nn.Module, stop: Stop) -> None:
        super().__init__()
        assert isinstance(model, Seq2SeqModel)
        self.model: Any = model
        self.stop = stop

    @property
    def output_weight(self) -> Tensor:
        """The translator's own."""
        weight: Tensor = self.model.output_weight
        return weight

    @property
    def looks_late(self) -> bool:
        """The translator's own."""
        late: bool = self.model.looks_late
        return late

    @property
    def longest(self) -> int | None:
        """The translator's own."""
        return longest(self.model)

    def encode(self, source: Tensor, lengths: Tensor) -> Any:
        """Read the source, if someone still waits for it."""
        self.stop.check()
        return self.model.encode(source, lengths)

    def decode(self, target: Tensor, memory: Any) -> Tensor:
        """Read a whole target."""
        self.stop.check()
        states: Tensor = self.model.decode(target, memory)
        return states

    def start(self, memory: Any) -> Past:
        """Give the past before the first step."""
        past: Past = self.model.start(memory)
        return past

    def step(self, tokens: Tensor, past: Any) -> tuple[Tensor, Any]:
        """Take a step, if someone still waits for it."""
        self.stop.check()
        taken: tuple[Tensor, Any] = self.model.step(tokens, past)
        return taken

    def output(self, states: Tensor) -> Tensor:
        """Score every token of the vocabulary as the next one."""
        scores: Tensor = self.model.output(states)
        return scores

    def look(self, source: Tensor, lengths: Tensor, target: Tensor) -> tuple[Tensor, Looks]:
        """Encode and decode, and tell where every layer and head looked."""
        self.stop.check()
        looked: tuple[Tensor, Looks] = self.model.look(source, lengths, target)
        return looked
