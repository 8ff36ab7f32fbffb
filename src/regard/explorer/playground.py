"""Attention on a few vectors, every step of it in numbers; they are regard's own."""

from typing import Any, get_args

import torch
from torch import Tensor, nn

from regard import masks
from regard.attention import Additive, Bilinear, Gaussian, Kernel, ScaledDot, look, make_score
from regard.attention.kernel_regression import KERNELS, PROFILES
from regard.explorer.errors import Refused
from regard.explorer.limits import LIMITS, Limits
from regard.explorer.schemas import AttendForm, MaskForm, Score
from regard.positions import ALiBi, Rotary, Sinusoidal

MASKS = ("none", "causal", "window", "lengths", "cells")
POSITIONS = ("none", "sinusoidal", "rotary", "alibi")
SEED = 7  # of the weights that a learned score shows
HEADS = 8  # ALiBi's first head of so many: its slope of 1/2 is steep enough to see


def known() -> dict[str, list[str]]:
    """List what the playground knows by name."""
    return {
        "scores": list(get_args(Score)),
        "masks": list(MASKS),
        "positions": list(POSITIONS),
        "kernels": list(KERNELS),
    }


@torch.inference_mode()
def attend(form: AttendForm, limits: Limits = LIMITS) -> dict[str, Any]:
    """Show queries, keys, scores, mask, weights and context, step by step."""
    queries, keys, values = _vectors(form, limits)
    queries, keys, bias = _placed(form.positions, queries, keys)
    score, parameters = _score(form, queries.shape[-1], keys.shape[-1])
    mask = _mask(form.mask or MaskForm(), len(queries), len(keys))
    raw: Tensor = score(queries, keys)
    biased = raw / form.temperature + bias
    allowed = torch.ones_like(raw, dtype=torch.bool) if mask is None else mask
    context, weights = look(
        queries,
        keys,
        values,
        score=lambda q, k: score(q, k) / form.temperature,
        mask=mask,
        bias=bias,
    )
    return {
        "queries": queries.tolist(),
        "keys": keys.tolist(),
        "scores": _finite(raw),
        "mask": allowed.tolist(),
        "biased_scores": _finite(biased),
        "weights": weights.tolist(),
        "context": context.tolist(),
        "formula": {"name": form.score, "parameters": parameters},
    }


def _vectors(form: AttendForm, limits: Limits) -> tuple[Tensor, Tensor, Tensor]:
    queries, keys = _rows("queries", form.queries), _rows("keys", form.keys)
    values = keys if form.values is None else _rows("values", form.values)
    if len(queries) * len(keys) > limits.max_attention_cells:
        raise Refused(
            422,
            f"queries times keys must be at most {limits.max_attention_cells}, "
            f"but they are {len(queries)} times {len(keys)}",
        )
    if len(values) != len(keys):
        raise Refused(
            422, f"values must be as many as keys, {len(keys)}, but there are {len(values)}"
        )
    learned = form.score in ("bilinear", "additive")
    if not learned and queries.shape[-1] != keys.shape[-1]:
        raise Refused(
            422,
            f"queries and keys must be of equal width for the score {form.score!r}, but they have "
            f"{queries.shape[-1]} and {keys.shape[-1]} numbers",
        )
    return queries, keys, values


def _rows(name: str, rows: list[list[float]]) -> Tensor:
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise Refused(
            422, f"{name} must be of one width, but some have {widths[0]} and others {widths[-1]}"
        )
    return torch.tensor(rows, dtype=torch.float64)


def _placed(kind: str, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Tell vectors where they stand; give the bias by distance too, zeros if there is none."""
    bias = torch.zeros(len(queries), len(keys), dtype=torch.float64)
    if kind == "alibi":
        bias = ALiBi(HEADS)(len(queries), len(keys), offset=0)[0, 0].double()
    if kind == "sinusoidal":
        queries, keys = (Sinusoidal(rows.shape[-1])(rows) for rows in (queries, keys))
    if kind == "rotary":
        for name, rows in (("queries", queries), ("keys", keys)):
            if rows.shape[-1] % 2:
                raise Refused(
                    422,
                    f"rotary positions turn pairs of numbers, so the width of {name} must be "
                    f"even, but it is {rows.shape[-1]}",
                )
        queries, keys = (Rotary(rows.shape[-1])(rows) for rows in (queries, keys))
    return queries, keys, bias


def _score(form: AttendForm, query_width: int, key_width: int) -> tuple[nn.Module, dict[str, Any]]:
    """Make the score, and tell its numbers."""
    about: dict[str, Any] = {"temperature": form.temperature}
    if form.positions == "alibi":
        about["slope"] = ALiBi(HEADS).slopes[0].item()
    if form.score == "gaussian":
        return Gaussian(form.bandwidth), about | {"bandwidth": form.bandwidth}
    if form.score in PROFILES:
        score = Kernel(PROFILES[form.score], form.bandwidth)
        return score, about | {"bandwidth": form.bandwidth}
    made = _seeded(make_score(form.score, (query_width, key_width))).double()
    if isinstance(made, ScaledDot):
        about["scale"] = query_width**-0.5
    if isinstance(made, Bilinear):
        about["W"] = made.matrix.tolist()
    if isinstance(made, Additive):
        about["W"] = made.project_queries.weight.tolist()
        about["U"] = made.project_keys.weight.tolist()
        about["v"] = made.compare.v.tolist()
    return made, about


def _seeded(score: nn.Module) -> nn.Module:
    """Give a learned score weights that are always the same, without torch's shared chance."""
    chance = torch.Generator().manual_seed(SEED)
    for weights in score.parameters():
        weights.normal_(std=weights.shape[-1] ** -0.5, generator=chance)
    return score


def _mask(form: MaskForm, queries: int, keys: int) -> Tensor | None:
    """Write the mask out: True where a query may look. Query i stands on key i."""
    if form.kind == "none":
        return None
    if form.kind == "cells":
        return _cells(form.cells, queries, keys)
    if form.kind == "causal":
        mask = masks.causal(align="first")
    elif form.kind == "window":
        mask = masks.window(_needed("size", form.size), align="first")
    else:
        mask = masks.lengths(_lengths(form.lengths, queries, keys))
    return mask.to_tensor(queries, keys)


def _needed(name: str, value: int | None) -> int:
    if value is None:
        raise Refused(422, f"mask.{name} is needed for this kind of mask")
    return value


def _lengths(counts: list[int] | None, queries: int, keys: int) -> int | list[int]:
    if counts is None or len(counts) not in (1, queries) or max(counts) > keys:
        raise Refused(
            422,
            f"mask.lengths must be one number or one for each of {queries} queries, "
            f"from 0 to {keys}, the number of keys",
        )
    return counts[0] if len(counts) == 1 else counts


def _cells(cells: list[list[bool]] | None, queries: int, keys: int) -> Tensor:
    if cells is None or [len(row) for row in cells] != [keys] * queries:
        raise Refused(422, f"mask.cells must be {queries} rows of {keys} cells, true or false")
    return torch.tensor(cells)


def _finite(numbers: Tensor) -> list[list[float | None]]:
    """Give rows of numbers, with None for minus infinity, which JSON cannot say."""
    rows: list[list[float]] = numbers.tolist()
    return [[None if n == -torch.inf else n for n in row] for row in rows]
