"""One attention call with its arguments checked and brought to common axes."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor

from regard._support.torch_modes import in_functorch
from regard.attention.scores import Score, ScoreFunction, as_score, get_score
from regard.errors import RegardError, wrong_type
from regard.masks import AttentionShape, Mask, as_mask, is_broadcastable


@dataclass(slots=True)
class AttentionCall:
    """The arguments of one call, as every backend receives them.

    Attributes:
        score: a `Score`; other callables have been wrapped.
        queries: `(*batch, query, width)`, with `groups` times as many heads as keys and values.
        keys: `(*batch, key, width)`.
        values: `(*batch, key, value)`.
        mask: True where a query may attend, or None.
        bias: added to the scores, or None.
        shape: of the scores, with the queries' heads.
        groups: query heads per key head; query head h reads key head h // groups.
        single_query: the caller's queries had no query axis, so that the result must have none.
    """

    score: Score
    queries: Tensor
    keys: Tensor
    values: Tensor
    mask: Mask | None
    bias: Tensor | None
    shape: AttentionShape
    groups: int
    single_query: bool

    def needs_grad(self) -> bool:
        """Return whether a gradient may be required of the result."""
        if in_functorch():
            return True
        if not torch.is_grad_enabled():
            return False
        inputs = (self.queries, self.keys, self.values, self.bias)
        if any(tensor is not None and tensor.requires_grad for tensor in inputs):
            return True
        return self.score.may_need_grad

    def preserve_rng(self) -> AbstractContextManager[None]:
        """Return a context that restores the RNG state, to score in addition to the call.

        A score may draw random numbers, as with dropout, but computing weights must not change the
        output of the call.
        """
        # a compiled graph has an RNG state of its own
        if not self.score.may_use_rng or torch.compiler.is_compiling():
            return nullcontext()
        device, accelerator = self.queries.device, torch.accelerator.current_accelerator()
        if accelerator is None or accelerator.type != device.type:
            return torch.random.fork_rng([])
        return torch.random.fork_rng([device], device_type=device.type)

    def restore_shape(self, rows: Tensor) -> Tensor:
        """Remove the query axis from a result, if the caller's queries had none."""
        return rows.squeeze(-2) if self.single_query else rows


def prepare_call(
    queries: Tensor,
    keys: Tensor | None,
    values: Tensor | None,
    score: str | Score | ScoreFunction,
    mask: Mask | Tensor | None,
    bias: Tensor | None,
    offset: int | None,
) -> AttentionCall:
    """Check the arguments of one call and bring them to common axes.

    Raises:
        RegardError: if shapes, widths or `offset` do not fit, or no score has this name.
        TypeError: if an argument has a wrong type or dtype.
    """
    keys = queries if keys is None else keys
    values = keys if values is None else values
    _check_dtypes(queries, keys, values)
    single_query = queries.ndim == keys.ndim - 1
    if single_query:
        queries = queries.unsqueeze(-2)
    _check_axes(queries, keys, values)
    score = get_score(score) if isinstance(score, str) else as_score(score)
    if offset is not None:
        _check_offset(offset)
    _check_widths(score, queries.shape[-1], keys.shape[-1])
    queries, keys, values, groups = _expand_batch(queries, keys, values)
    shape = AttentionShape(
        queries=queries.shape[-2],
        keys=keys.shape[-2],
        batch=tuple(queries.shape[:-2]),
        offset=offset,
        device=queries.device,
    )
    if mask is not None:
        mask = as_mask(mask)
        mask.check(shape)
    bias = None if bias is None else prepare_bias(bias, shape.score_shape)
    return AttentionCall(score, queries, keys, values, mask, bias, shape, groups, single_query)


def prepare_bias(bias: Tensor, score_shape: tuple[int, ...]) -> Tensor:
    """Return a bias with the axes of the scores, `(*batch, query, key)`, or (query, key) alone."""
    if not isinstance(bias, Tensor):
        raise wrong_type("bias", "a tensor", bias)
    if not bias.is_floating_point():
        raise TypeError(
            f"bias must be floating-point, to be added to the scores, but it is {bias.dtype}; "
            "pass booleans as mask="
        )
    original = tuple(bias.shape)
    if bias.ndim > 2 and bias.ndim == len(score_shape) - 1:
        bias = bias.unsqueeze(-3)  # (batch, query, key): the same for every head
    if bias.ndim not in (2, len(score_shape)) or not is_broadcastable(
        tuple(bias.shape), score_shape
    ):
        raise RegardError(f"bias must broadcast to {score_shape}, but its shape is {original}")
    return bias


def stack_groups(rows: Tensor, groups: int) -> Tensor:
    """Stack the query heads that share a key head along the query axis."""
    if groups == 1:
        return rows
    split: Tensor = rows.unflatten(-3, (rows.shape[-3] // groups, groups))
    return split.flatten(-3, -2)  # (key head, group * query, width)


def unstack_groups(rows: Tensor, groups: int) -> Tensor:
    """Undo `stack_groups`: move every query head back to the head axis."""
    if groups == 1:
        return rows
    split: Tensor = rows.unflatten(-2, (groups, rows.shape[-2] // groups))
    return split.flatten(-4, -3)  # (key head * group, query, width)


def _check_dtypes(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    for name, tensor in (("queries", queries), ("keys", keys), ("values", values)):
        if not isinstance(tensor, Tensor):
            raise wrong_type(name, "a tensor", tensor)
        if not tensor.is_floating_point():
            raise TypeError(
                f"{name} must be floating-point, but it is {tensor.dtype}; pass {name}.float()"
            )
    is_mixed = not queries.dtype == keys.dtype == values.dtype
    if is_mixed and not torch.is_autocast_enabled(queries.device.type):
        raise TypeError(
            f"queries, keys and values must have one dtype, but they have {queries.dtype}, "
            f"{keys.dtype} and {values.dtype}"
        )


def _check_offset(offset: int) -> None:
    if not isinstance(offset, Integral | torch.SymInt):  # also of numpy, or of an export
        raise wrong_type("offset", "an integer", offset)
    if offset < 0:
        raise RegardError(f"offset must be 0 or more, a key's index, but it is {offset}")


def _check_axes(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    if keys.ndim < 2 or queries.ndim != keys.ndim:
        raise RegardError(
            "queries (*batch, query, width) and keys (*batch, key, width) must have the same "
            "number of axes, at least two, or queries one fewer for a single query, but their "
            f"shapes are {tuple(queries.shape)} and {tuple(keys.shape)}"
        )
    if values.ndim != keys.ndim or values.shape[-2] != keys.shape[-2]:
        raise RegardError(
            f"values must have one row per key, (*batch, {keys.shape[-2]}, value width), "
            f"but their shape is {tuple(values.shape)} for keys {tuple(keys.shape)}"
        )


def _check_widths(score: Score, query_width: int, key_width: int) -> None:
    if score.needs_equal_widths and query_width != key_width:
        raise RegardError(
            f"queries and keys must have equal widths for {score.display_name}, but they have "
            f"{query_width} and {key_width}; Bilinear({query_width}, {key_width}) or "
            f"Additive({query_width}, {key_width}) compares different widths"
        )
    widths = score.widths
    if widths is not None and widths != (query_width, key_width):
        raise RegardError(
            f"{score.display_name} was built for queries of width {widths[0]} and keys of width "
            f"{widths[1]}, but they have {query_width} and {key_width}"
        )


def _expand_batch(
    queries: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor, int]:
    """Expand batch axes of size one, and count the query heads per key head."""
    batch, key_batch = queries.shape[:-2], keys.shape[:-2]
    if batch == key_batch == values.shape[:-2]:
        return queries, keys, values, 1
    original = tuple(queries.shape)
    groups = _count_groups(batch, key_batch, values.shape[:-2])
    if groups > 1:
        batch = torch.Size([*batch[:-1], key_batch[-1]])
        queries = stack_groups(queries, groups)
    try:
        common = torch.broadcast_shapes(batch, key_batch, values.shape[:-2])
    except RuntimeError:
        raise RegardError(
            "the batch axes of queries, keys and values must agree, be 1, or have heads that are "
            f"a multiple of the keys' heads, but the shapes are {original}, "
            f"{tuple(keys.shape)} and {tuple(values.shape)}"
        ) from None
    queries, keys, values = (x.expand(*common, -1, -1) for x in (queries, keys, values))
    return unstack_groups(queries, groups), keys, values, groups


def _count_groups(batch: torch.Size, key_batch: torch.Size, value_batch: torch.Size) -> int:
    if len(batch) < 2 or value_batch[-1] != key_batch[-1] or not key_batch[-1]:
        return 1
    heads, key_heads = batch[-1], key_batch[-1]
    return max(1, heads // key_heads) if heads % key_heads == 0 else 1
