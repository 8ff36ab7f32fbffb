"""All that was seen of a model: a list of looks, a table, and a trace."""

from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from torch import Tensor

from regard.capture.call_site import Call, Site
from regard.capture.calls.base import Asked
from regard.capture.record import CapturedAttention, Keep
from regard.capture.to_trace import told
from regard.errors import RegardError, unknown_name
from regard.trace import Kind, TokenList, Trace

LOOKED_FOR = (
    "scaled_dot_product_attention, nn.MultiheadAttention, flex_attention, regard's own attention, "
    "and softmax followed by a product"
)

OPEN = 32  # looks of one site that a step may go on: as many as layers share one module


class Capture:
    """Where a model looked while it was watched, in order."""

    def __init__(
        self,
        model: str,
        keep: Keep = "auto",
        modules: Sequence[str] = (),
        heads: Sequence[int] | None = None,
    ) -> None:
        self.model = model
        self.functions = 0  # of torch that were called
        self._keep, self._modules = keep, modules
        self._heads = None if heads is None else list(heads)
        self._looks: list[CapturedAttention] = []
        self._open: dict[
            tuple[str, str], deque[CapturedAttention]
        ] = {}  # which may go on, latest first
        self._calls: dict[tuple[str, str], int] = {}
        self._left_out: dict[str, int] = {}
        self._missed: dict[str, str] = {}

    def add(
        self,
        site: Site,
        asked: Asked,
        same: bool | None,
        grown: bool = False,
        call: Call | None = None,
    ) -> None:
        """Keep what a module saw, as a call of its own or as the next step of the last one."""
        if self._modules and not any(fnmatchcase(site.name, pattern) for pattern in self._modules):
            self._left_out[site.name] = self._left_out.get(site.name, 0) + 1
            return
        where, kind = (site.name, site.place), kind_of(asked, same, grown)
        before = self._open.setdefault(where, deque(maxlen=OPEN))
        for look in before:
            if look.goes_on(asked, kind, call) or (same and look.goes_on(asked, "causal", call)):
                look.go_on(asked, call)
                before.remove(look)
                before.appendleft(look)
                return
        every = asked.sizes[1]
        look = CapturedAttention(
            *where,
            self._calls.get(where, 0),
            kind,
            self._keep,
            self._chosen(site.name, every),
            every,
            asked.offset if kind == "causal" else 0,
            asked.added,
        )
        look.add(asked, call)
        self._looks.append(look)
        before.appendleft(look)
        self._calls[where] = look.call + 1

    def close(self) -> None:
        """Let go of what only served to know a next step."""
        self._open.clear()
        for look in self:
            look.forget()

    def miss(self, site: Site, error: Exception) -> None:
        """Note that a module looked, but could not be seen."""
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        self._missed[f"{site.name} ({site.place})"] = reason

    def __len__(self) -> int:
        return len(self._looks)

    def __iter__(self) -> Iterator[CapturedAttention]:
        return iter(self._looks)

    def __getitem__(self, number: int) -> CapturedAttention:
        return self._looks[number]

    @property
    def module_names(self) -> tuple[str, ...]:
        """The modules that looked, each once."""
        return tuple(dict.fromkeys(look.name for look in self))

    def weights(self, name: str, call: int = 0, kind: Kind | None = None) -> Tensor:
        """Give the weights of a module, (batch, head, query, key)."""
        for look in self:
            if look.name == name and look.call == call and kind in (None, look.kind):
                if look.weights is None:
                    raise RegardError(
                        f"the weights of {name} were reduced, not kept whole; keep='all' keeps them"
                    )
                return look.weights
        self.check()
        if name not in self.module_names:
            raise unknown_name("module that looked", name, self.module_names)
        raise RegardError(f"{name} looked, but not in a call {call}")

    def check(self) -> None:
        """Raise if there is nothing to see, and say why."""
        if not self._looks:
            raise RegardError(self._nothing())

    def trace(
        self,
        source: TokenList | Sequence[str] | None = None,
        target: TokenList | Sequence[str] | None = None,
        *,
        batch_index: int = 0,
        call: int | None = None,
        title: str = "",
        gold: Sequence[tuple[int, int]] | None = None,
    ) -> Trace:
        """Record what was seen of one sentence of the batch.

        Args:
            source: its tokens, as the model got them; the text, if there is only one.
            target: the tokens that a decoder read.
            call: which call of each module; all by default.
        """
        self.check()
        looks = [look for look in self if call in (None, look.call)]
        if not looks:
            raise RegardError(f"no module looked in a call {call}")
        return told(looks, source, target, batch_index, title, self.model, gold)

    def save(
        self,
        path: Path | str,
        source: TokenList | Sequence[str] | None = None,
        target: TokenList | Sequence[str] | None = None,
    ) -> None:
        """Write the trace of the first sentence to a file."""
        self.trace(source, target).save(path)

    def __str__(self) -> str:
        if not self._looks:
            return self._nothing()
        head = ("site", "place", "kind", "heads", "queries × keys", "calls", "kept")
        lines = [head, *self._lines()]
        widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
        table = ["  ".join(cell.ljust(w) for cell, w in zip(x, widths, strict=True)) for x in lines]
        if self._left_out:
            names = len(self._left_out)
            table.append(f"not kept: {names} modules outside modules={', '.join(self._modules)!r}")
        table += self._misses()
        return "\n".join(line.rstrip() for line in table)

    def __repr__(self) -> str:
        calls, modules = len(self), len(self.module_names)
        return f"<Capture of {self.model}: {calls} attention calls in {modules} modules>"

    def _lines(self) -> list[tuple[str, ...]]:
        calls: dict[tuple[str, ...], list[int]] = {}
        for look in self:
            _, queries, keys = look.sizes
            sizes = (str(look.every), f"{queries} × {keys}")
            counts = calls.setdefault((look.name, look.place, look.kind, *sizes, look.kept), [])
            counts.append(look.steps)
        return [(*line[:5], _times(counts), line[5]) for line, counts in calls.items()]

    def _misses(self) -> list[str]:
        return [f"not seen: {site}: {reason}" for site, reason in self._missed.items()]

    def _nothing(self) -> str:
        if self._missed:
            return "\n".join(self._misses())
        if not self.functions:
            return (
                f"nothing was seen: {self.model} was not called inside `with watch(...)`, "
                "or in another thread only"
            )
        if self._left_out:
            names = ", ".join(self._left_out)
            return f"nothing was kept: modules={', '.join(self._modules)!r} leaves out {names}"
        return (
            f"no attention was found in {self.model}; looked for {LOOKED_FOR}. "
            "TorchScript and kernels of other packages are not seen; "
            "regard.probe tells the weights of any function that is linear in its values"
        )

    def _chosen(self, name: str, every: int) -> list[int]:
        heads = list(range(every)) if self._heads is None else self._heads
        if not all(0 <= head < every for head in heads):
            raise RegardError(
                f"heads must be numbers from 0 to {every - 1} for {name}, but they are {heads}"
            )
        return heads


def kind_of(asked: Asked, same: bool | None, grown: bool = False) -> Kind:
    """Tell who looks at whom: by where rows come from or, where that is not known, by sizes.

    Few queries over many keys of the same text stand at its end if the keys came from a cache.
    Else they may stand anywhere, as a class token does, and look at the text from outside.
    """
    queries, keys = asked.sizes[2], asked.sizes[3] - asked.added
    if same is None:
        same = queries == keys or asked.causal
    if not same:
        return "cross"
    if asked.causal or (queries < keys and grown):
        return "causal"
    return "cross" if queries < keys else "self"


def _times(steps: list[int]) -> str:
    """Write how many calls there were, and their steps if they were stitched."""
    total = sum(steps)
    return str(len(steps)) if total == len(steps) else f"{len(steps)} ({total} steps)"
