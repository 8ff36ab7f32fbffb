"""What was seen at one site in one call: rows of weights, whole or reduced, in order."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.functional import pad

from regard.capture.call_site import Call
from regard.capture.calls.base import Asked, Whole
from regard.capture.calls.sliding_window import Sliding
from regard.capture.summary import Rows, join, reduce
from regard.trace import TOP_KEYS, Kind

Keep = Literal["auto", "all", "reduced"]
KEEPS = ("auto", "all", "reduced")

WHOLE_UP_TO = 2**22  # weights of one call, 16 MiB; "auto" reduces what is more


@dataclass(slots=True)
class CapturedAttention:
    """The looks of one module in one call, or in the steps of one generation.

    Steps of a generation go on where the last one stopped, and are stitched to one call.
    """

    name: str
    place: str
    call: int
    kind: Kind
    keep: Keep
    heads: list[int]
    every: int  # heads that the module has
    offset: int  # the key on which the first query stands
    added: int = 0  # keys at the end that are no positions
    steps: int = 0
    sizes: tuple[int, int, int] = (0, 0, 0)  # sentences, queries, keys
    norms: Tensor | None = field(default=None, repr=False)  # (batch, head, key)
    hidden: Tensor | None = field(default=None, repr=False)  # (batch, key): by masks, from all
    _parts: list[Tensor | Rows] = field(default_factory=list, repr=False)
    _numbers: int = 0
    _sample: Tensor | None = field(default=None, repr=False)
    _memory: StorageWeakRef | None = field(default=None, repr=False)
    _call: Call | None = field(default=None, repr=False)

    def add(self, asked: Asked, call: Call | None = None) -> None:
        """Keep the rows of a call behind those that are there."""
        batch, _, queries, keys = asked.sizes
        first = self.offset + self.sizes[1]
        self.steps += 1
        self.sizes = (batch, self.sizes[1] + queries, max(keys, self.sizes[2]))
        self._numbers += batch * len(self.heads) * queries * keys
        if self._reduces():
            self._reduce_parts()
            self._parts.append(reduce(asked, self.heads, first))
        else:
            weights = asked.weigh(slice(None), self.heads, slice(None))
            self._parts.append(pad(weights, (0, keys - weights.shape[-1])).cpu())
        self.norms = _norms(asked, self.heads)
        self.hidden = _both(self.hidden, _hidden(asked))
        self._sample = _sample(asked, _places(min(self._end(), keys)))
        self._memory, self._call = _storage(asked), call

    def goes_on(self, asked: Asked, kind: Kind, call: Call | None = None) -> bool:
        """Tell whether a call continues this one: the same keys, or the last of them and new rows.

        Keys of another text are the same if they were kept, or computed again in the same call of
        the model. Another call may read the same text once more: that is a look of its own.
        """
        batch, heads, queries, keys = asked.sizes
        if (batch, heads) != (self.sizes[0], self.every) or self._sample is None:
            return False
        if "cross" in (kind, self.kind):
            kept = self._memory is not None and _storage(asked) == self._memory
            once = call is not None and self._call is not None and call.is_also(self._call)
            fits = kind == self.kind and queries == 1 and keys == self.sizes[2] and (kept or once)
        else:
            fits = 0 <= self._dropped(asked) < self._end()
        if not fits:
            return False
        dropped = self._dropped(asked)
        places = [place - dropped for place in _places(self._end()) if place >= dropped]
        if dropped and self._begins_alike(asked):
            return False  # the end was taken away, and not the beginning
        sample = _sample(asked, places)
        return sample is not None and _alike(sample, self._sample[:, :, -len(places) :])

    def go_on(self, asked: Asked, call: Call | None = None) -> None:
        """Stitch the rows of a step to those before it."""
        if self.kind == "self":
            self.kind = "causal"  # what grows step by step has not seen what came later
        norms, dropped = self.norms, self._dropped(asked)
        self.add(Sliding(asked, dropped) if dropped else asked, call)
        if norms is not None and self.norms is not None:
            self.norms[..., :dropped] = norms[..., :dropped]

    def forget(self) -> None:
        """Let go of what only served to know a next step."""
        self._sample = self._memory = self._call = None

    @property
    def weights(self) -> Tensor | None:
        """The weights, (batch, head, query, key), if they were kept whole."""
        if self.is_reduced:
            return None
        width = self._width()
        parts = [part for part in self._parts if isinstance(part, Tensor)]
        parts = [pad(part, (0, max(0, width - part.shape[-1])))[..., :width] for part in parts]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)

    @property
    def rows(self) -> Rows | None:
        """What the weights were reduced to, if they were."""
        parts = [part for part in self._parts if isinstance(part, Rows)]
        return join(parts, self._width()) if parts else None

    @property
    def is_reduced(self) -> bool:
        """Whether the weights were reduced."""
        return any(isinstance(part, Rows) for part in self._parts)

    @property
    def kept(self) -> str:
        """Say what was kept."""
        some = "" if len(self.heads) == self.every else f"heads {_listed(self.heads)} of "
        some += f"{self.every}, " if some else ""
        return some + (
            f"reduced to top {TOP_KEYS} and tiles" if self.is_reduced else "whole weights"
        )

    def _reduces(self) -> bool:
        if self.keep == "auto":
            return self._numbers > WHOLE_UP_TO
        return self.keep == "reduced"

    def _reduce_parts(self) -> None:
        first = self.offset
        for n, part in enumerate(self._parts):
            if isinstance(part, Tensor):
                heads = list(range(part.shape[1]))
                part = self._parts[n] = reduce(Whole(part), heads, first)
            first += part.top_keys.shape[2]

    def _width(self) -> int:
        """Count the keys; of a cache with room to spare, only those that were filled."""
        _, queries, keys = self.sizes
        return min(keys, self.offset + queries + self.added) if self.kind == "causal" else keys

    def _end(self) -> int:
        return self.sizes[2] if self.kind == "cross" else self.offset + self.sizes[1]

    def _begins_alike(self, asked: Asked) -> bool:
        first = _sample(asked, [0])
        return first is None or self._sample is None or _alike(first, self._sample[:, :, :1])

    def _dropped(self, asked: Asked) -> int:
        """Count the first keys of a text that its cache no longer has, as in a sliding window."""
        return 0 if self.kind == "cross" else self._end() - asked.offset


def _norms(asked: Asked, heads: list[int]) -> Tensor | None:
    """Measure how long each value is, for each head that gathers it."""
    if asked.values is None:
        return None
    batch, every, _, keys = asked.sizes
    norms = torch.linalg.vector_norm(asked.values.float(), dim=-1)
    own: Tensor = norms[:, [head * norms.shape[1] // every for head in heads]]
    return own.expand(batch, len(heads), keys).cpu()


def _hidden(asked: Asked) -> Tensor:
    """Tell which keys (batch, key) a mask hides from everyone: without one, none."""
    hidden = asked.hidden()
    if hidden is None:
        return torch.zeros(asked.sizes[0], asked.sizes[3], dtype=torch.bool, device="cpu")
    return hidden.cpu()


def _both(before: Tensor | None, now: Tensor) -> Tensor:
    """Tell which keys were hidden in every step; those that were not there yet, in the others."""
    if before is None:
        return now
    hidden = now.clone()
    hidden[:, : before.shape[1]] &= before[:, : now.shape[1]]
    return hidden


def _storage(asked: Asked) -> StorageWeakRef | None:
    """Point at the memory of keys without keeping it: while it lives, nothing else is there."""
    return None if asked.memory is None else StorageWeakRef(asked.memory.untyped_storage())


def _places(count: int) -> list[int]:
    """Choose keys by which to know all again: first, middle and last, and ever more near the end.

    The first may be gone, from a window that slides on.
    """
    steps = [2**n for n in range(count.bit_length())]
    return sorted({0, count // 2, *(count - step for step in steps)}) if count else []


def _sample(asked: Asked, places: list[int]) -> Tensor | None:
    """Take some keys of each head, if they are there."""
    memory, every = asked.memory, asked.sizes[1]
    if memory is None or not places or memory.shape[-2] <= places[-1]:
        return None
    sample: Tensor = memory[:, :, places]
    return sample[:, [head * sample.shape[1] // every for head in range(every)]]


def _alike(keys: Tensor, before: Tensor) -> bool:
    """Tell whether keys are those before; some caches keep what they are projected from anew."""
    if keys.shape != before.shape or keys.dtype != before.dtype:
        return False
    if torch.finfo(keys.dtype).bits < 32:
        return torch.equal(keys, before)  # where rounding is as large as what tells keys apart
    near = 64 * torch.finfo(keys.dtype).eps * before.abs().amax()
    return bool(((keys - before).abs() <= near).all())


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:6])) + (", …" if len(numbers) > 6 else "")
