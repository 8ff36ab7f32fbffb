"""What all patterns share: sizes, the expected records, and the list of true weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn

Inputs = Callable[["Sizes"], tuple[Any, ...]]


@dataclass(frozen=True)
class Sizes:
    """The sizes of all axes, by default all different."""

    batch: int = 2
    heads: int = 3
    queries: int = 5  # also the tokens of self-attention
    keys: int = 7
    width: int = 12

    @property
    def head_width(self) -> int:
        return self.width // self.heads


COINCIDENCES = {
    "batch=heads": Sizes(batch=3),
    "heads=queries": Sizes(queries=3),
    "batch=queries": Sizes(batch=5),
    "tokens=head_width": Sizes(queries=4, keys=4),
    "batch_of_1": Sizes(batch=1),
    "heads_of_1": Sizes(heads=1),
    "all_equal": Sizes(batch=3, heads=3, queries=3, keys=3, width=9),
}
"""Sizes that coincide on purpose: this is where axes get mislabelled."""


@dataclass(frozen=True)
class Expected:
    """What `watch` should find, and in which lists it should mention the module."""

    kinds: tuple[str, ...] = ()  # one per record
    normaliser: str | tuple[str, ...] = "softmax"  # several if more than one name is good
    applied: bool | None = False  # whether `applied` has an entry; None if both are fine
    names: tuple[str, ...] | None = None  # of the records; the root module by default
    values_not_found: tuple[str, ...] = ()  # modules
    not_attention: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()  # in `values_not_found` or `failures`: never silent
    may_be_listed: bool = False  # the lists are not checked
    is_open: bool = False  # records or any list: what is right is a matter of opinion


@dataclass(frozen=True)
class Pattern:
    """A module in somebody's style, its inputs, and what `watch` should find in it."""

    name: str
    style: str  # the first line of its docstring
    build: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...]]
    expected: Expected
    sizes: Sizes
    run: Callable[..., Any]  # calls the model
    steps: bool = False  # the true weights are rows of one record, noted step by step
    sums_to_one: bool = True
    probe: str | None = None  # layout of the output, to verify the truth by shifting values
    probe_axis: int = 1  # of the positions in the projected values
    is_traced: bool = False  # whether shifting values shows the weights of its trace, too
    tolerance: float = 1e-6
    train: bool = False

    @property
    def theme(self) -> str:
        return self.name.partition(".")[0]


PATTERNS: dict[str, Pattern] = {}


class Attention(nn.Module):
    """Base of the patterns: projections, and a list for the true weights.

    `forward` calls `note` with its weights and their layout. Nothing is computed there unless the
    test collects the truth, so that a watched pass has only the functions of the pattern.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.truth: list[Tensor] | None = None
        self.sizes = sizes
        self.heads, self.head_width = sizes.heads, sizes.head_width
        self.scale = sizes.head_width**-0.5
        width = sizes.width
        self.to_q, self.to_k = sharp_linear(width, width), sharp_linear(width, width)
        self.to_v, self.to_out = nn.Linear(width, width), nn.Linear(width, width)

    def note(self, weights: Tensor, layout: str = "", **sizes: int) -> None:
        """Collect weights, rearranged to (batch, head, query, key) as `layout` says."""
        if self.truth is not None:
            copy = weights.detach().clone()
            self.truth.append(rearrange(copy, layout, **sizes) if layout else copy)

    def note_dot_product(
        self,
        q: Tensor,
        k: Tensor,
        layout: str = "",
        mask: Tensor | None = None,
        scale: float | None = None,
        **sizes: int,
    ) -> None:
        """Collect the weights that a fused kernel does not return, from its formula."""
        if self.truth is not None:
            scores = (q @ k.transpose(-2, -1)) * (q.shape[-1] ** -0.5 if scale is None else scale)
            if mask is not None:
                is_boolean = mask.dtype == torch.bool
                scores = scores.masked_fill(~mask, -torch.inf) if is_boolean else scores + mask
            self.note(torch.softmax(scores, dim=-1), layout, **sizes)


class FusedAttention(Attention):
    """Base of patterns with one projection to queries, keys and values."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        del self.to_q, self.to_k, self.to_v
        self.to_qkv = sharp_linear(sizes.width, 3 * sizes.width)


class Bare(Attention):
    """Base of patterns that have no projections, or others."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        del self.to_q, self.to_k, self.to_v, self.to_out


def sharp_linear(width: int, out: int) -> nn.Linear:
    """Return a projection with larger weights than usual: attention that is not uniform."""
    layer = nn.Linear(width, out)
    nn.init.normal_(layer.weight, 0, 0.5)
    return layer


def one_text(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.queries, sizes.width),)


def one_long_text(sizes: Sizes) -> tuple[Tensor, ...]:
    return (torch.randn(sizes.batch, sizes.keys, sizes.width),)


def two_texts(sizes: Sizes) -> tuple[Tensor, ...]:
    return (*one_text(sizes), *one_long_text(sizes))


def call(model: nn.Module, *inputs: Any) -> Any:
    return model(*inputs)


def pattern(
    *kinds: str,
    inputs: Inputs | None = None,
    variants: bool | tuple[str, ...] | dict[str, Sizes] = False,
    sizes: Sizes | None = None,
    run: Callable[..., Any] = call,
    steps: bool = False,
    sums_to_one: bool | None = None,
    probe: str | None = "b q (h d)",
    probe_axis: int = 1,
    is_traced: bool = False,
    tolerance: float = 1e-6,
    train: bool = False,
    **expected: Any,
) -> Callable[[type[nn.Module]], type[nn.Module]]:
    """Register a module class, which takes `Sizes`, under its theme and name.

    Args:
        kinds: of the expected records.
        inputs: makes them; by default one text, and two if any record is of kind "cross".
        variants: with all `COINCIDENCES`, those named, or other sizes by name.
        sizes: other than the default ones.
        run: calls the model with its inputs.
        steps: the notes are rows of one record, such as those of a generation.
        sums_to_one: whether rows of the truth do; by default those of a plain softmax.
        probe: layout of the output; None if shifting values does not verify the truth.
        probe_axis: of the positions in the projected values.
        is_traced: shifting values verifies windows that a trace puts back to positions.
        tolerance: absolute, of the weights.
        train: run in training mode.
        expected: fields of `Expected`.
    """
    wanted = Expected(kinds, **expected)
    make_inputs = inputs or (two_texts if "cross" in kinds else one_text)
    if sums_to_one is None:
        sums_to_one = wanted.normaliser == "softmax" and wanted.applied is False
    names = tuple(COINCIDENCES) if variants is True else (variants or ())
    others = names if isinstance(names, dict) else {name: COINCIDENCES[name] for name in names}

    def register(cls: type[nn.Module]) -> type[nn.Module]:
        cases = {"": sizes or Sizes()} | {f"-{name}": x for name, x in others.items()}
        for suffix, case in cases.items():
            name = f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}{suffix}"
            assert name not in PATTERNS and cls.__doc__, name
            PATTERNS[name] = Pattern(
                name=name,
                style=cls.__doc__.splitlines()[0],
                build=_builder(cls, case, train),
                inputs=_input_maker(make_inputs, case),
                expected=wanted,
                sizes=case,
                run=run,
                steps=steps,
                sums_to_one=bool(sums_to_one),
                probe=probe,
                probe_axis=probe_axis,
                is_traced=is_traced,
                tolerance=tolerance,
                train=train,
            )
        return cls

    return register


def _builder(cls: type[nn.Module], sizes: Sizes, train: bool) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        torch.manual_seed(0)
        return cls(sizes).train(train)

    return build


def _input_maker(make: Inputs, sizes: Sizes) -> Callable[[], tuple[Any, ...]]:
    def make_inputs() -> tuple[Any, ...]:
        torch.manual_seed(1)
        return make(sizes)

    return make_inputs
