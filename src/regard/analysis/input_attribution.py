"""Attribution to what a model reads: gradient × input, and integrated gradients."""

from collections.abc import Callable
from dataclasses import replace
from warnings import warn

import numpy as np
import torch
from torch import Tensor

from regard.analysis.embedded_inputs import EmbeddedInputs
from regard.errors import RegardError
from regard.trace import Array, AttentionMap, TokenList, Trace

OUTPUT = "output"  # token list of a single output
MAX_REMAINDER = 0.05  # of what is attributed: beyond, the quadrature has not converged


def gradient_x_input(
    scores: Tensor, embedded: EmbeddedInputs, batch_index: int
) -> dict[str, Array]:
    """Return gradient × input, (row, position) of each input."""
    embedded.per_position(embedded.distances, batch_index)  # raises if there are none
    names = list(embedded.vectors)
    values_by_name: dict[str, list[Array]] = {name: [] for name in names}
    for score in scores:
        gradients = torch.autograd.grad(
            score, list(embedded.vectors.values()), retain_graph=True, allow_unused=True
        )
        products = {
            name: embedded.distances[name] * (0.0 if gradient is None else gradient)
            for name, gradient in zip(names, gradients, strict=True)
        }
        for name, value in embedded.per_position(products, batch_index).items():
            values_by_name[name].append(value.detach().double().cpu().numpy())
    return {name: np.stack(values) for name, values in values_by_name.items()}


def integrate(
    run_at: Callable[[float], tuple[Tensor, EmbeddedInputs]], steps: int, batch_index: int
) -> dict[str, Array]:
    """Integrate gradient × distance from the baseline, by Gauss-Legendre quadrature.

    What is attributed adds up to the change of the output from the baseline. A warning says so if
    it does not.
    """
    if steps < 1:
        raise RegardError(f"steps must be 1 or more, but it is {steps}")
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    total: dict[str, Array] = {}
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        for name, value in gradient_x_input(*run_at(float(node)), batch_index).items():
            total[name] = total.get(name, 0) + weight * value
    end, start = (run_at(share)[0].detach().double().cpu().numpy() for share in (1.0, 0.0))
    _check_sum(np.concatenate(list(total.values()), axis=1), end - start, steps)
    return total


def _check_sum(attributed: Array, changes: Array, steps: int) -> None:
    """Warn if attributions (row, position) do not add up to the changes of the outputs (row,)."""
    remainders = np.abs(attributed.sum(1) - changes)
    worst = int(np.argmax(remainders / (np.abs(attributed).sum(1) + np.abs(changes) + 1e-12)))
    size = float(np.abs(attributed[worst]).sum() + np.abs(changes[worst]))
    if remainders[worst] > MAX_REMAINDER * size:
        warn(
            f"integrated gradients have not converged in {steps} steps: they add up to "
            f"{attributed[worst].sum():.3g}, but the output changes by {changes[worst]:.3g}; "
            "use more steps, or a token as baseline",
            stacklevel=4,  # in code that calls `attribute`
        )


def build_input_trace(trace: Trace, method: str, values: dict[str, Array]) -> Trace:
    """Return signed attributions as two maps for each input: for and against the output."""
    tokens, maps = dict(trace.tokens), []
    rows = next(iter(values.values())).shape[0]
    last = trace.maps[-1]
    queries = last.queries if rows > 1 and rows == len(tokens[last.queries]) else OUTPUT
    if queries == OUTPUT:
        names = (OUTPUT,) if rows == 1 else tuple(str(n) for n in range(rows))
        tokens[OUTPUT] = TokenList(names)
    for n, (name, value) in enumerate(values.items()):
        keys = _input_list(trace, name, n, len(values), value.shape[1])
        tokens.setdefault(keys, TokenList(tuple(str(i) for i in range(value.shape[1]))))
        for sign, side in ((1, "for"), (-1, "against")):
            weights = np.maximum(sign * value, 0)[None].astype(np.float32)
            maps.append(
                AttentionMap(
                    name=f"{method}, {side} the output",
                    kind="cross",
                    queries=queries,
                    keys=keys,
                    weights=weights,
                )
            )
    return replace(trace, tokens=tokens, maps=tuple(maps))


def _input_list(trace: Trace, name: str, index: int, count: int, length: int) -> str:
    """Return the token list of an input: of the decoder if it is named so, or the second of two."""
    is_decoder = name.startswith("decoder") or (count > 1 and index == 1)
    candidates = ("decoder_input", "target") if is_decoder else ("source", "text", *trace.tokens)
    for candidate in candidates:
        if candidate in trace.tokens and len(trace.tokens[candidate]) == length:
            return candidate
    return f"input {name}"
