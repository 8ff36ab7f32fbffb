"""The watcher: a torch function mode that sees every call, and a context around it."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from regard._support.functorch import in_functorch
from regard.attention.call import AttentionCall
from regard.capture.arguments import by_position
from regard.capture.call_site import Names
from regard.capture.calls.base import Asked, Dot
from regard.capture.calls.flex import Flex
from regard.capture.calls.regard import asked_of
from regard.capture.capture import Capture
from regard.capture.isolation import aside, looks_aside
from regard.capture.lineage import Lineage
from regard.capture.mode_stack import leave
from regard.capture.observers import present
from regard.capture.record import KEEPS, Keep
from regard.capture.softmax import Written, heads_inside, keys_added
from regard.capture.traceless import traceless
from regard.errors import RegardError, unknown_name

_QUIET = {"", "dim", "size", "is_floating_point", "stride", "numel", "__set__"}
_VIEWS = {"T", "mT", "H", "mH"}  # attributes that are tensors of the same numbers
_VEILED = RegardError(
    "under torch.func or a forward derivative numbers cannot be read; a plain pass can be watched"
)


@contextmanager
def watch(
    model: nn.Module,
    keep: Keep = "auto",
    modules: str | Sequence[str] | None = None,
    heads: Sequence[int] | None = None,
) -> Iterator[Capture]:
    """Watch where a model looks: `with watch(model) as seen: model(x)`.

    The model's output is the same, bit for bit, with and without being watched, unless it is
    compiled or takes a fast path of torch's. A compiled model is run as it was written.
    `nn.MultiheadAttention`, `nn.TransformerEncoderLayer`, `nn.TransformerEncoder` and what is made
    of them run on their slow path in eval mode, too: they round otherwise, and an encoder that is
    given `src_key_padding_mask` writes numbers, not zeros, at padded positions.

    What runs in other threads, as TorchScript or under `torch.func` is not seen. The steps of a
    generation are stitched to one look, over a window that slides, too; where a beam search changes
    rows between steps they are not: watch one pass over the text that it found instead. Watches may
    overlap in one thread, as in tasks of asyncio; each sees all calls of its model.

    Args:
        keep: "all" weights; "reduced" to the strongest of each row, a coarse picture, and sums;
            or "auto", which reduces calls of more than four million weights.
        modules: patterns such as "decoder.*" of the names of modules to be watched.
        heads: the numbers of the heads to be kept.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, but it is a {type(model).__name__}")
    names = Names(model)
    patterns = _checked(keep, modules, names)
    seen = Capture(type(model).__name__, keep, patterns, heads)
    watcher = Watcher(names, seen)
    with present(watcher.look_on), watcher:
        try:
            yield seen
        finally:
            seen.close()


class Watcher(TorchFunctionMode):
    """Sees every torch function on its way, lets it run untouched, and looks at what it did."""

    def __init__(self, names: Names, seen: Capture) -> None:
        super().__init__()
        self._names, self._seen = names, seen
        self._lineage = Lineage()
        self._written = Written(self._lineage)
        self._resting = False

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run a function, and look at what it did."""
        kwargs = kwargs or {}
        name = _name(func)
        if self._rests() or name in _QUIET:
            return func(*args, **kwargs)
        self._seen.functions += 1
        if func is functional.multi_head_attention_forward:
            return self._inside(func, args, kwargs)
        given = by_position(args, kwargs)
        if "dropout" in name:
            with aside(), self._unharmed():
                self._written.save(name, *given)
        out = func(*args, **kwargs)
        with aside(), self._unharmed():
            self._look_at(func, name, *given, out)
        return out

    def __exit__(self, *error: object) -> None:
        """Leave the stack of modes, wherever others have come to stand meanwhile."""
        leave(self)

    def look_on(self, job: AttentionCall, run: Callable[[], object]) -> object:
        """Let regard's own attention run, and look at its job."""
        if self._rests():
            return run()
        with aside(), self._unharmed():
            job = replace(job, score=traceless(job.score))  # as it is before it runs
        self._resting = True
        try:
            result = run()
        finally:
            self._resting = False
        self._seen.functions += 1
        with aside(), self._unharmed(), job.preserve_rng():
            # queries that stand somewhere among the keys are of the same text
            placed = job.shape.offset is not None
            same = placed or self._lineage.same(job.queries, job.keys)
            self._keep(asked_of(job), same, placed or self._lineage.grown(job.keys))
        return result

    def _rests(self) -> bool:
        return self._resting or looks_aside() or _recomputing()

    def _look_at(
        self,
        func: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
    ) -> None:
        if name == "scaled_dot_product_attention":
            heads = self._lineage.heads(args[0])
            asked = Dot(*args, **kwargs, added=keys_added.get(), heads=heads)
            self._keep_pair(asked, *args[:2])
        elif name == "flex_attention":
            self._keep_pair(Flex(*args, **kwargs), *args[:2])
        elif (look := self._written.follow(func, name, args, kwargs, out)) is not None:
            self._keep(look.asked, look.same, look.grown)
        else:
            # what attention gathers is followed no further: it is not the rows that it looked at
            self._lineage.follow(name, args, out)

    def _keep_pair(self, asked: Asked, queries: Tensor, keys: Tensor) -> None:
        self._keep(asked, self._lineage.same(queries, keys), self._lineage.grown(keys))

    def _keep(self, asked: Asked, same: bool | None, grown: bool) -> None:
        site = self._names.site()
        if site is not None and all(asked.sizes):
            call = self._names.call() if asked.sizes[2] == 1 else None  # it may be a step
            with _exactly():
                self._seen.add(site, asked, same, grown, call)

    def _inside(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a function of torch's that is written in Python so that its own calls are seen.

        Such a function first asks whether a mode is present, and then hands itself over to it.
        Its twin is the same code, told that there is none.
        """
        assert isinstance(func, FunctionType), "it is written in Python"
        world = {**func.__globals__, "has_torch_function": lambda _: False}
        twin = FunctionType(
            func.__code__, world, func.__name__, func.__defaults__, func.__closure__
        )
        twin.__kwdefaults__ = func.__kwdefaults__
        given = inspect.signature(func).bind(*args, **kwargs).arguments
        heads = heads_inside.set(int(given["num_heads"]))
        added = keys_added.set((given["bias_k"] is not None) + bool(given["add_zero_attn"]))
        try:
            with self:
                return twin(*args, **kwargs)
        finally:
            heads_inside.reset(heads)
            keys_added.reset(added)

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Let the model go on whatever goes wrong in looking, and say what was missed."""
        try:
            yield
        except RegardError:
            raise
        except Exception as error:
            site = self._names.site()
            if site is not None:
                self._seen.miss(site, _VEILED if in_functorch() else error)


@contextmanager
def _exactly() -> Iterator[None]:
    """Compute without autocast, whose rounding was done when the call was taken down."""
    devices = [d for d in ("cpu", "cuda") if torch.is_autocast_enabled(d)]
    with ExitStack() as stack:
        for device in devices:
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _recomputing() -> bool:
    """Tell whether this is a backward pass, in which checkpointed layers run once more."""
    return bool(torch._C._current_graph_task_id() != -1)


def _name(func: Callable[..., Any]) -> str:
    """Name a function without its overload; of attributes, only those that are tensors."""
    name = getattr(func, "__name__", "")
    if name == "__get__":
        name = getattr(getattr(func, "__self__", None), "__name__", "")
        return name if name in _VIEWS else ""
    return name.partition(".")[0]


def _checked(keep: Keep, modules: str | Sequence[str] | None, names: Names) -> tuple[str, ...]:
    if keep not in KEEPS:
        raise ValueError(f"keep must be one of {', '.join(KEEPS)}, but it is {keep!r}")
    patterns = (modules,) if isinstance(modules, str) else tuple(modules or ())
    for pattern in patterns:
        if not names.match(pattern):
            raise unknown_name("module", pattern, names.all())
    return patterns
