"""Induction heads: heads that attend to what followed an earlier occurrence of the same token."""

from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.trace import Array


def induction_scores(weights: Any, tokens: Any) -> Array:
    """Return the induction score of each head of causal self-attention.

    It is the weight that a query gives to the keys right after earlier occurrences of its own token
    (prefix matching, Olsson et al. 2022, "In-context Learning and Induction Heads"), as a mean over
    the queries whose token has occurred before. A head with a score near 1 finds how a text went on
    the last time; a model of two layers or more copies repeated texts by it.

    Args:
        weights: (batch, head, query, key), as `Capture.weights` returns them.
        tokens: ids (batch, position), or any values that can be compared.

    Returns:
        The scores, (head,).

    Raises:
        RegardError: if the shapes do not fit, or no token occurs twice.

    Example:
        >>> tokens = [["a", "b", "c", "a", "b"]]
        >>> weights = np.zeros((1, 2, 5, 5))
        >>> weights[0, 0, 3, 1] = weights[0, 0, 4, 2] = 1.0  # a -> b, b -> c
        >>> weights[0, 1, 3, 0] = weights[0, 1, 4, 1] = 1.0  # a -> a, b -> b
        >>> induction_scores(weights, tokens).tolist()
        [1.0, 0.0]
    """
    array, ids = (
        np.asarray(x.detach().cpu()) if hasattr(x, "detach") else np.asarray(x)
        for x in (weights, tokens)
    )
    if array.ndim != 4 or ids.ndim != 2 or array.shape[2:] != (ids.shape[1],) * 2:
        raise RegardError(
            "weights must be (batch, head, position, position) for tokens (batch, position), but "
            f"the shapes are {array.shape} and {ids.shape}"
        )
    is_same = ids[:, :, None] == ids[:, None, :]
    follows = np.zeros(is_same.shape, dtype=bool)
    follows[:, :, 1:] = np.tril(is_same, k=-1)[:, :, :-1]  # the key after an earlier occurrence
    repeated = follows.any(-1)
    if not repeated.any():
        raise RegardError("tokens must occur twice or more to measure induction, but none does")
    given = np.einsum("bhqk,bqk->hbq", array.astype(np.float64), follows)
    return np.asarray(given[:, repeated].mean(-1))
