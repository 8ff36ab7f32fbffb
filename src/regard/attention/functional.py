"""attend, weights and look: attention as functions, and the choice of backend."""

from typing import NamedTuple

from torch import Tensor

from regard._support.arguments import check_dropout
from regard._support.torch_modes import in_transform_beyond_kernels
from regard.attention.backends import BACKENDS, BackendName, blockwise, dense
from regard.attention.backends.visibility import zero_large_hidden_keys
from regard.attention.call import AttentionCall, prepare_call
from regard.attention.observer import run_observed
from regard.attention.scores import Score, ScoreFunction
from regard.errors import RegardError
from regard.masks import Mask


class AttentionOutput(NamedTuple):
    """What `look` returns.

    Attributes:
        context: `(*batch, query, value)`: the values, summed by their weights.
        weights: `(*batch, query, key)`, before dropout: a row sums to 1, or to 0 if the query is
            fully masked.

    Example:
        >>> import torch
        >>> context, weights = look(torch.randn(2, 5, 12))  # it unpacks like a tuple
        >>> torch.allclose(weights.sum(-1), torch.ones(2, 5))
        True
    """

    context: Tensor
    weights: Tensor


def attend(
    queries: Tensor,
    keys: Tensor | None = None,
    values: Tensor | None = None,
    *,
    score: str | Score | ScoreFunction = "scaled_dot",
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    offset: int | None = None,
    backend: BackendName | None = None,
) -> Tensor:
    """Return softmax(score(queries, keys) + bias) · values: the context of every query.

    Args:
        queries: `(*batch, query, width)`, with heads, if any, at axis -3. With one axis fewer than
            the keys it is a single query, and the context has no query axis.
        keys: `(*batch, key, width)`; the queries by default, which is self-attention.
        values: `(*batch, key, value width)`; the keys by default.
        score: a name of `regard.attention.SCORE_NAMES`, a `Score`, or any function (queries, keys)
            -> scores. It receives some of the queries at a time, and must score each pair by
            itself.
        mask: True where a query may attend: a mask of `regard.masks` or a boolean tensor.
        bias: added to the scores, shaped like a mask.
        dropout: probability of dropping a weight, applied always: a module passes 0 in
            evaluation mode.
        offset: index of the key at the first query's own position, when earlier keys come from a
            cache.
        backend: "fused", "blockwise" or "dense"; chosen by score and size by default.

    Returns:
        The context, `(*batch, query, value width)`. A fully masked query gets zeros.

    Raises:
        RegardError: if a shape, a name or a number does not fit.
        TypeError: if an argument has a wrong type or dtype.

    Example:
        >>> import torch
        >>> from regard.masks import causal
        >>> words = torch.randn(2, 5, 12)
        >>> attend(words, score="cosine", mask=causal()).shape
        torch.Size([2, 5, 12])
    """
    check_dropout(dropout)
    call = prepare_call(queries, keys, values, score, mask, bias, offset)
    chosen = BACKENDS[_choose_backend(call, backend)]
    context = run_observed(call, lambda: chosen.attend(zero_large_hidden_keys(call), dropout))
    return call.restore_shape(context)


def weights(
    queries: Tensor,
    keys: Tensor | None = None,
    *,
    score: str | Score | ScoreFunction = "scaled_dot",
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    offset: int | None = None,
) -> Tensor:
    """Return the attention weights, softmax(score(queries, keys) + bias).

    Args:
        queries: as for `attend`.
        keys: as for `attend`.
        score: as for `attend`.
        mask: as for `attend`.
        bias: as for `attend`.
        offset: as for `attend`.

    Returns:
        `(*batch, query, key)`: each row sums to 1, or to 0 if the query is fully masked.

    Raises:
        RegardError: if a shape, a name or a number does not fit.
        TypeError: if an argument has a wrong type or dtype.

    Example:
        >>> import torch
        >>> weights(torch.zeros(1, 2), torch.zeros(4, 2))
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    call = prepare_call(queries, keys, None, score, mask, bias, offset)
    return call.restore_shape(blockwise.weights(zero_large_hidden_keys(call)))


def look(
    queries: Tensor,
    keys: Tensor | None = None,
    values: Tensor | None = None,
    *,
    score: str | Score | ScoreFunction = "scaled_dot",
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    offset: int | None = None,
    backend: BackendName | None = None,
) -> AttentionOutput:
    """Return the context and the weights. The context is `attend`'s own, bit for bit.

    Takes the arguments of `attend` and raises the same errors.

    Returns:
        An `AttentionOutput(context, weights)`, with the weights before dropout.

    Example:
        >>> import torch
        >>> output = look(torch.randn(2, 5, 12))
        >>> output.context.shape, output.weights.shape
        (torch.Size([2, 5, 12]), torch.Size([2, 5, 5]))
    """
    check_dropout(dropout)
    call = prepare_call(queries, keys, values, score, mask, bias, offset)
    name = _choose_backend(call, backend)
    context, computed = run_observed(call, lambda: _look(call, name, dropout))
    return AttentionOutput(call.restore_shape(context), call.restore_shape(computed))


def _look(call: AttentionCall, name: BackendName, dropout: float) -> tuple[Tensor, Tensor]:
    call = zero_large_hidden_keys(call)
    if name == "dense":  # which needs the weights anyway
        return dense.look(call, dropout)
    backend = BACKENDS[name]
    with call.preserve_rng():
        computed = backend.weights(call)
    return backend.attend(call, dropout), computed


def _choose_backend(call: AttentionCall, name: BackendName | None) -> BackendName:
    """Return fused for a dot product; else dense, unless there are too many scores to hold."""
    is_dot_product = call.score.is_dot_product
    if name is None:
        if in_transform_beyond_kernels():
            return "dense"
        if is_dot_product:
            return "fused"
        return "dense" if dense.has_few_scores(call) else "blockwise"
    if name not in BACKENDS:
        raise RegardError(
            f"backend must be one of {', '.join(BACKENDS)}, or None, but it is {name!r}"
        )
    if name == "fused" and not is_dot_product:
        raise RegardError(
            f"{call.score.display_name} does not fold into a dot product, so backend='fused' "
            "cannot be used; backend=None chooses another"
        )
    return name
