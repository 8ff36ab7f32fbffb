"""The exact weights of any mechanism that is linear in its values."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.errors import RegardError


@torch.no_grad()
def recover_weights(
    mechanism: Callable[[Tensor, Tensor, Tensor], Tensor],
    queries: Tensor,
    keys: Tensor,
    width: int | None = None,
) -> Tensor:
    """Recover attention weights from any function that is linear in its values.

    If context = weights @ values, then one-hot values, the identity matrix, make the context the
    weights themselves. That holds for fused kernels, linear attention and the inner part of a
    module, whether or not they compute weights explicitly.

    Args:
        mechanism: called with queries, keys and values; returns the context.
        queries: `(*batch, query, width)`.
        keys: `(*batch, key, width)`.
        width: value width to use, if the mechanism needs a certain one or memory is short; the
            mechanism is called once per `width` keys. By default once, with all keys.

    Returns:
        Weights `(*batch, query, key)`.

    Raises:
        RegardError: if `width` is less than 1, or the context has another width.

    Example:
        >>> import torch
        >>> from torch.nn.functional import scaled_dot_product_attention
        >>> queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
        >>> weights = recover_weights(scaled_dot_product_attention, queries, keys)
        >>> torch.allclose(weights, (queries @ keys.mT / 12**0.5).softmax(-1), atol=1e-6)
        True
    """
    num_keys = keys.shape[-2]
    width = num_keys if width is None else width
    if width < 1:
        raise RegardError(f"width must be 1 or more, but it is {width}")
    identity = torch.eye(num_keys, dtype=keys.dtype, device=keys.device)
    blocks = []
    for columns in identity.split(width, dim=-1):
        values = pad(columns, (0, width - columns.shape[-1])).expand(*keys.shape[:-1], width)
        context = mechanism(queries, keys, values)
        if context.shape[-1] != width:
            raise RegardError(
                f"mechanism must return a context of width {width}, the width of the values, but "
                f"it returned the shape {tuple(context.shape)}"
            )
        blocks.append(context[..., : columns.shape[-1]])
    return torch.cat(blocks, dim=-1)
