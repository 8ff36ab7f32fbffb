"""One call of attention, checked and lined up: equal batch axes, grouped heads, fitting mask."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard._support.functorch import in_functorch
from regard.attention.scores.registry import Score, get_score
from regard.masks.base import Mask, as_mask
from regard.masks.shape import AttentionShape, broadcasts


@dataclass(slots=True)
class AttentionCall:
    """What every backend is handed.

    Queries have `groups` times the heads of keys and values: query head h reads key head
    h // groups. The frame counts the queries' heads.
    """

    score: Score
    queries: Tensor
    keys: Tensor
    values: Tensor
    mask: Mask | None
    bias: Tensor | None
    shape: AttentionShape
    groups: int
    single_query: bool  # there was one query, without an axis to count queries

    def needs_grad(self) -> bool:
        """Tell whether a gradient may be asked for; a plain function might have weights, too."""
        if in_functorch():
            return True
        if not torch.is_grad_enabled():
            return False
        given = (self.queries, self.keys, self.values, self.bias)
        if any(numbers is not None and numbers.requires_grad for numbers in given):
            return True
        return not isinstance(self.score, nn.Module) or any(
            weight.requires_grad for weight in self.score.parameters()
        )

    def preserve_rng(self) -> AbstractContextManager[None]:
        """Put the random state back after scoring aside: a score may draw, as with dropout."""
        calm = isinstance(self.score, nn.Module) and not self.score.training
        if calm or torch.compiler.is_compiling():  # a compiled graph has a random state of its own
            return nullcontext()
        device = self.queries.device
        return torch.random.fork_rng([device] if device.type == "cuda" else [])

    def restore_shape(self, rows: Tensor) -> Tensor:
        """Give a result the axes that the caller's queries have."""
        return rows.squeeze(-2) if self.single_query else rows


def prepare_call(
    queries: Tensor,
    keys: Tensor | None,
    values: Tensor | None,
    score: str | Score,
    mask: Mask | Tensor | None,
    bias: Tensor | None,
    offset: int | None,
) -> AttentionCall:
    """Check one call's arguments and bring them to common axes."""
    keys = queries if keys is None else keys
    values = keys if values is None else values
    _check_numbers(queries, keys, values)
    single = queries.ndim == keys.ndim - 1
    if single:
        queries = queries.unsqueeze(-2)
    _check_axes(queries, keys, values)
    if isinstance(score, str):
        score = get_score(score)
    _check_callable(score)
    if offset is not None and offset < 0:
        raise ValueError(f"offset must be 0 or more, a key's number, but it is {offset}")
    _check_widths(score, queries.shape[-1], keys.shape[-1])
    queries, keys, values, groups = _common_batch(queries, keys, values)
    frame = AttentionShape(
        queries=queries.shape[-2],
        keys=keys.shape[-2],
        batch=tuple(queries.shape[:-2]),
        offset=offset,
        device=queries.device,
    )
    if mask is not None:
        mask = as_mask(mask)
        mask.check(frame)
    bias = None if bias is None else prepare_bias(bias, frame.score_shape)
    return AttentionCall(score, queries, keys, values, mask, bias, frame, groups, single)


def stack_groups(rows: Tensor, groups: int) -> Tensor:
    """Put the queries of heads that read the same keys below each other."""
    if groups == 1:
        return rows
    parted: Tensor = rows.unflatten(-3, (rows.shape[-3] // groups, groups))
    return parted.flatten(-3, -2)  # (key head, group * query, width)


def unstack_groups(rows: Tensor, groups: int) -> Tensor:
    """Undo `grouped`: give every query head its own axis again."""
    if groups == 1:
        return rows
    parted: Tensor = rows.unflatten(-2, (groups, rows.shape[-2] // groups))
    return parted.flatten(-4, -3)  # (key head * group, query, width)


def _check_numbers(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    for name, numbers in (("queries", queries), ("keys", keys), ("values", values)):
        if not isinstance(numbers, Tensor):
            raise TypeError(f"{name} must be a tensor, but it is a {type(numbers).__name__}")
        if not numbers.is_floating_point():
            raise TypeError(
                f"{name} must be floating-point, but it is {numbers.dtype}; {name}.float() would do"
            )
    mixed = not queries.dtype == keys.dtype == values.dtype
    if mixed and not torch.is_autocast_enabled(queries.device.type):
        raise TypeError(
            f"queries, keys and values must have one dtype, but they have {queries.dtype}, "
            f"{keys.dtype} and {values.dtype}"
        )


def _check_axes(queries: Tensor, keys: Tensor, values: Tensor) -> None:
    if keys.ndim < 2 or queries.ndim != keys.ndim:
        raise ValueError(
            "queries (*batch, query, width) and keys (*batch, key, width) must have as many axes, "
            "at least two, or queries one fewer for a single query, but their shapes are "
            f"{tuple(queries.shape)} and {tuple(keys.shape)}"
        )
    if values.ndim != keys.ndim or values.shape[-2] != keys.shape[-2]:
        raise ValueError(
            f"values must have one row per key, (*batch, {keys.shape[-2]}, value width), "
            f"but their shape is {tuple(values.shape)} for keys {tuple(keys.shape)}"
        )


def _check_callable(score: object) -> None:
    if isinstance(score, type):
        raise TypeError(f"score must be a module, but it is a class; {score.__name__}() would do")
    if not callable(score):
        raise TypeError(
            "score must be a name, a module or a function of queries and keys, but it is a "
            f"{type(score).__name__}"
        )


def _check_widths(score: Score, query_width: int, key_width: int) -> None:
    """Compare widths with what the score says it takes; a plain function says nothing."""
    takes = getattr(score, "widths", None)
    if takes == "equal" and query_width != key_width:
        raise ValueError(
            f"queries and keys must have equal widths for {type(score).__name__}, but they have "
            f"{query_width} and {key_width}; Bilinear({query_width}, {key_width}) or "
            f"Additive({query_width}, {key_width}) would compare them"
        )
    if isinstance(takes, tuple) and takes != (query_width, key_width):
        raise ValueError(
            f"{type(score).__name__} was made for queries of width {takes[0]} and keys of width "
            f"{takes[1]}, but they have {query_width} and {key_width}"
        )


def _common_batch(
    queries: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor, int]:
    """Stretch batch axes of size one, and find how many query heads share a key head."""
    batch, key_batch = queries.shape[:-2], keys.shape[:-2]
    if batch == key_batch == values.shape[:-2]:
        return queries, keys, values, 1
    given = tuple(queries.shape)
    groups = _groups(batch, key_batch, values.shape[:-2])
    if groups > 1:
        batch = torch.Size([*batch[:-1], key_batch[-1]])
        queries = stack_groups(queries, groups)
    try:
        common = torch.broadcast_shapes(batch, key_batch, values.shape[:-2])
    except RuntimeError:
        raise ValueError(
            "the batch axes of queries, keys and values must agree, be 1, or have heads that are "
            f"a multiple of the keys' heads, but the shapes are {given}, "
            f"{tuple(keys.shape)} and {tuple(values.shape)}"
        ) from None
    queries, keys, values = (x.expand(*common, -1, -1) for x in (queries, keys, values))
    return unstack_groups(queries, groups), keys, values, groups


def _groups(batch: torch.Size, key_batch: torch.Size, value_batch: torch.Size) -> int:
    if len(batch) < 2 or value_batch[-1] != key_batch[-1] or not key_batch[-1]:
        return 1
    heads, key_heads = batch[-1], key_batch[-1]
    return max(1, heads // key_heads) if heads % key_heads == 0 else 1


def prepare_bias(bias: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Give a bias the axes of the scores, (*batch, query, key), or of query and key alone."""
    if not bias.is_floating_point():
        raise TypeError(
            f"bias must be floating-point, numbers to add to the scores, but it is {bias.dtype}; "
            "booleans go in as mask="
        )
    given = tuple(bias.shape)
    if bias.ndim > 2 and bias.ndim == len(shape) - 1:
        bias = bias.unsqueeze(-3)  # (batch, query, key): the same for every head
    if bias.ndim not in (2, len(shape)) or not broadcasts(tuple(bias.shape), shape):
        raise ValueError(f"bias must broadcast to {shape}, but its shape is {given}")
    return bias
