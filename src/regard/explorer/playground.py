"""The playground: attention between a few vectors, computed by regard, with every step returned."""

from typing import Any, get_args

import torch
from starlette.exceptions import HTTPException
from torch import Tensor, nn

from regard import masks
from regard.attention import (
    KERNEL_PROFILES,
    KERNELS,
    Additive,
    Bilinear,
    Gaussian,
    Kernel,
    ScaledDot,
    look,
    make_score,
)
from regard.explorer.schemas import (
    LIMITS,
    AttendRequest,
    ExplorerLimits,
    MaskKind,
    MaskRequest,
    PositionKind,
    ScoreName,
)
from regard.positions import ALiBi, Rotary, Sinusoidal

PARAMETER_SEED = 7  # of the scores that have parameters
ALIBI_HEADS = 8  # the playground shows the first of these heads; its slope is 1/2, easy to see


def playground_options() -> dict[str, list[str]]:
    """Return the names of scores, masks, positions and kernels that the playground offers."""
    return {
        "scores": list(get_args(ScoreName)),
        "masks": list(get_args(MaskKind)),
        "positions": list(get_args(PositionKind)),
        "kernels": list(KERNELS),
    }


@torch.inference_mode()
def attend_with_steps(request: AttendRequest, limits: ExplorerLimits = LIMITS) -> dict[str, Any]:
    """Return queries, keys, scores, mask, weights and context of one attention call.

    Everything is computed in float64. Raises `HTTPException` 422 if the request's parts do not fit
    together.
    """
    queries, keys, values = _vectors(request, limits)
    queries, keys, bias = _apply_positions(request.positions, queries, keys)
    score, parameters = _make_score(request, queries.shape[-1], keys.shape[-1])
    mask = _make_mask(request.mask or MaskRequest(), len(queries), len(keys))
    scores: Tensor = score(queries, keys)
    context, weights = look(
        queries,
        keys,
        values,
        score=lambda q, k: score(q, k) / request.temperature,
        mask=mask,
        bias=bias,
    )
    full_mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    return {
        "queries": queries.tolist(),
        "keys": keys.tolist(),
        "scores": _to_rows(scores),
        "mask": full_mask.tolist(),
        "biased_scores": _to_rows(scores / request.temperature + bias),
        "weights": weights.tolist(),
        "context": context.tolist(),
        "formula": {"name": request.score, "parameters": parameters},
    }


def _vectors(request: AttendRequest, limits: ExplorerLimits) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values of a request after checking that they fit together."""
    queries, keys = _to_tensor("queries", request.queries), _to_tensor("keys", request.keys)
    values = keys if request.values is None else _to_tensor("values", request.values)
    if len(queries) * len(keys) > limits.max_attention_cells:
        raise HTTPException(
            422,
            f"queries × keys must be at most {limits.max_attention_cells}, "
            f"but they are {len(queries)} × {len(keys)}",
        )
    if len(values) != len(keys):
        raise HTTPException(
            422, f"values must be as many as keys, {len(keys)}, but there are {len(values)}"
        )
    query_width, key_width = queries.shape[-1], keys.shape[-1]
    if request.score not in ("bilinear", "additive") and query_width != key_width:
        raise HTTPException(
            422,
            f"queries and keys must have the same width for the score {request.score!r}, "
            f"but they have {query_width} and {key_width}",
        )
    return queries, keys, values


def _to_tensor(name: str, rows: list[list[float]]) -> Tensor:
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise HTTPException(
            422, f"{name} must all have the same width, but widths are {widths[0]} to {widths[-1]}"
        )
    return torch.tensor(rows, dtype=torch.float64)


def _apply_positions(
    kind: PositionKind, queries: Tensor, keys: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries and keys with positions encoded, and the bias of ALiBi (zero for others)."""
    bias = torch.zeros(len(queries), len(keys), dtype=torch.float64)
    if kind == "alibi":
        bias = ALiBi(ALIBI_HEADS)(len(queries), len(keys), offset=0)[0, 0].double()
    if kind == "sinusoidal":
        queries, keys = (Sinusoidal(rows.shape[-1])(rows) for rows in (queries, keys))
    if kind == "rotary":
        for name, rows in (("queries", queries), ("keys", keys)):
            if rows.shape[-1] % 2:
                raise HTTPException(
                    422,
                    f"rotary positions rotate pairs of components, so the width of {name} must be "
                    f"even, but it is {rows.shape[-1]}",
                )
        queries, keys = (Rotary(rows.shape[-1])(rows) for rows in (queries, keys))
    return queries, keys, bias


def _make_score(
    request: AttendRequest, query_width: int, key_width: int
) -> tuple[nn.Module, dict[str, Any]]:
    """Return the score and the parameters that its formula shows."""
    parameters: dict[str, Any] = {"temperature": request.temperature}
    if request.positions == "alibi":
        parameters["slope"] = ALiBi(ALIBI_HEADS).slopes[0].item()
    if request.score == "gaussian":
        return Gaussian(request.bandwidth), parameters | {"bandwidth": request.bandwidth}
    if request.score in KERNEL_PROFILES:
        kernel = Kernel(KERNEL_PROFILES[request.score], request.bandwidth)
        return kernel, parameters | {"bandwidth": request.bandwidth}
    score = _initialize(make_score(request.score, (query_width, key_width))).double()
    if isinstance(score, ScaledDot):
        parameters["scale"] = query_width**-0.5
    if isinstance(score, Bilinear):
        parameters["W"] = score.matrix.tolist()
    if isinstance(score, Additive):
        parameters["W"] = score.query_projection.weight.tolist()
        parameters["U"] = score.key_projection.weight.tolist()
        parameters["v"] = score.pairwise.v.tolist()
    return score, parameters


def _initialize(score: nn.Module) -> nn.Module:
    """Initialize the parameters of a score reproducibly, without touching torch's global RNG."""
    generator = torch.Generator().manual_seed(PARAMETER_SEED)
    for parameter in score.parameters():
        parameter.normal_(std=parameter.shape[-1] ** -0.5, generator=generator)
    return score


def _make_mask(request: MaskRequest, queries: int, keys: int) -> Tensor | None:
    """Return the mask as a tensor, True where a query may attend; query i is aligned with key i."""
    if request.kind == "none":
        return None
    if request.kind == "cells":
        return _cell_mask(request.cells, queries, keys)
    if request.kind == "causal":
        mask = masks.causal(align="first")
    elif request.kind == "window":
        if request.size is None:
            raise HTTPException(422, "mask.size is required for a window mask")
        mask = masks.window(request.size, align="first")
    else:
        mask = masks.lengths(_mask_lengths(request.lengths, queries, keys))
    return mask.to_tensor(queries, keys)


def _mask_lengths(lengths: list[int] | None, queries: int, keys: int) -> int | list[int]:
    if lengths is None or len(lengths) not in (1, queries) or max(lengths) > keys:
        raise HTTPException(
            422,
            f"mask.lengths must be one integer or one for each of {queries} queries, "
            f"from 0 to {keys}, the number of keys",
        )
    return lengths[0] if len(lengths) == 1 else lengths


def _cell_mask(cells: list[list[bool]] | None, queries: int, keys: int) -> Tensor:
    if cells is None or [len(row) for row in cells] != [keys] * queries:
        raise HTTPException(422, f"mask.cells must be {queries} rows of {keys} booleans")
    return torch.tensor(cells)


def _to_rows(scores: Tensor) -> list[list[float | None]]:
    """Return scores as lists, with None for minus infinity, which JSON cannot represent."""
    rows: list[list[float]] = scores.tolist()
    return [[None if score == -torch.inf else score for score in row] for row in rows]
