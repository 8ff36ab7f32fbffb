"""Attribution: how much each token contributed to an output, as a trace."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.analysis.embedded_inputs import Arguments, EmbeddedInputs, to_arguments
from regard.analysis.flow import rollout, weight_by_value_norm
from regard.analysis.input_attribution import build_input_trace, gradient_x_input, integrate
from regard.analysis.layers import group_heads, merge_maps
from regard.analysis.output_scores import Target, select_scores
from regard.analysis.relevance import Layer, propagate_relevance
from regard.capture import (
    Capture,
    CapturedAttention,
    GradientCapture,
    find_unplaced,
    watch_gradients,
    windows_to_positions,
)
from regard.errors import RegardError, unknown_name, wrong_type
from regard.trace import Array, AttentionMap, TokenList, Trace

METHODS = (
    "gradient_x_weight",
    "rollout",
    "chefer",
    "value_norm",
    "gradient_x_input",
    "integrated_gradients",
)
"""Names of the methods of `attribute`."""


class _Pass(NamedTuple):
    """One watched pass of a model, with its graph."""

    gradient_capture: GradientCapture
    embedded: EmbeddedInputs
    scores: Tensor  # (row,): what is attributed


def attribute(
    model: nn.Module,
    inputs: Any,
    target: Target = None,
    *,
    method: str = "chefer",
    tokens: TokenList | Sequence[str] | None = None,
    target_tokens: TokenList | Sequence[str] | None = None,
    written: TokenList | Sequence[str] | None = None,
    tokenizer: Any = None,
    batch_index: int = 0,
    steps: int = 50,
    baseline: int | None = None,
) -> Trace:
    """Attribute an output of a model to the tokens that it read.

    Works with every model whose attention `regard.watch` sees; fused kernels stay in use. The
    methods::

        gradient_x_weight     (∂output/∂A ⊙ A)⁺ of every layer and head
        rollout               product of the layers' mean weights and residuals (Abnar and Zuidema
                              2020); of cross-attention, each layer's mean times the encoder's
        chefer                relevance propagation (Chefer et al. 2021)
        value_norm            weights times the norms of the values (Kobayashi et al. 2020, here
                              before the output projection), of every layer and head
        gradient_x_input      gradient × embedding, summed over the width
        integrated_gradients  its mean on the way from a baseline (Sundararajan et al. 2017)

    The last two are signed. They give two maps, of evidence for the output and of evidence against
    it; the first minus the second is the attribution. Rollout and value norms do not depend on the
    target. With several outputs, a row is an output; with one, `chefer` returns all rows of its
    relevance, of which that of the position that the output is read from (a class token, the last
    position) explains it.

    Args:
        model: a model in evaluation mode.
        inputs: what it is called with: a tensor, a tuple, or a dict such as a tokenizer returns.
        target: which output. A class, for logits (batch, class); (position, token), for logits
            (batch, position, token); or a function of the model's output that returns a scalar, or
            one per row. By default the highest logit, at every position if there are several.
        method: one of the above.
        tokens: what the model reads, to label the trace; numbered by default.
        target_tokens: what a decoder reads.
        written: what it writes; see `Capture.trace`.
        tokenizer: a tokenizer of transformers, to label the tokens of `inputs` instead.
        batch_index: which item of the batch.
        steps: number of points on the way from the baseline, for integrated gradients.
        baseline: token id that integrated gradients start from; by default vectors of zeros. A
            warning says if their sum is not the change of the output, so that more steps are
            needed.

    Returns:
        A trace, which can be drawn as any other; its weights are attributions and do not sum to 1.

    Raises:
        TypeError: if `model` is no module.
        RegardError: if there is no such method or output, the model is in training mode, or some
            attention of the model was not seen, so that the attribution would be incomplete.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> model = nn.TransformerEncoderLayer(12, nhead=3, batch_first=True).eval()
        >>> x = torch.randn(1, 4, 12)
        >>> trace = attribute(model, x, lambda states: states[0, 0].sum(), tokens=list("abcd"))
        >>> trace.maps[0].name, trace.maps[0].shape, trace.maps[0].queries
        ('chefer', (1, 4, 4), 'text')
    """
    _check_model(model)
    if method not in METHODS:
        raise unknown_name("attribution method", method, METHODS)
    arguments = to_arguments(inputs)
    with torch.inference_mode(False), torch.enable_grad():
        result = _run(model, EmbeddedInputs(model, arguments), target, batch_index)
        capture = result.gradient_capture.capture
        if method in ("rollout", "chefer"):
            _check_all_placed(capture, batch_index)
        trace = capture.trace(
            tokens,
            target_tokens,
            written=written,
            tokenizer=tokenizer,
            inputs=None if tokenizer is None else inputs,
            batch_index=batch_index,
        )
        if method == "value_norm":
            return weight_by_value_norm(trace)
        if method == "rollout":
            return _rollout(replace(trace, maps=merge_maps(trace.maps, _layers(trace, result))))
        if method in ("chefer", "gradient_x_weight"):
            _check_extra_keys(capture)
            by_weights = _relevance if method == "chefer" else _gradient_x_weight
            return by_weights(trace, result, batch_index)
        if method == "gradient_x_input":
            values = gradient_x_input(result.scores, result.embedded, batch_index)
        else:

            def run_at(share: float) -> tuple[Tensor, EmbeddedInputs]:
                embedded = EmbeddedInputs(model, arguments, share, baseline)
                return _run(model, embedded, target, batch_index).scores, embedded

            values = integrate(run_at, steps, batch_index)
    return build_input_trace(trace, method, values)


def _check_model(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        raise wrong_type("model", "an nn.Module", model)
    if model.training:
        raise RegardError(
            "model must be in evaluation mode, as dropout would change the attribution with every "
            "pass; call model.eval()"
        )


def _run(model: nn.Module, embedded: EmbeddedInputs, target: Target, batch_index: int) -> _Pass:
    args, kwargs = embedded.arguments
    with embedded.applied(), watch_gradients(model) as capture:
        output = model(*args, **kwargs)
    _check_complete(capture.capture, embedded.arguments)
    embedded.batch_size = _batch_size(capture.capture)
    return _Pass(capture, embedded, select_scores(output, target, batch_index, embedded.batch_size))


def _check_complete(capture: Capture, arguments: Arguments) -> None:
    """Raise if some attention was not captured, or not in the layout of the inputs."""
    capture.check()
    missing = (*capture.failures, *capture.values_not_found)
    if missing:
        raise RegardError(
            "the attribution would be incomplete, since attention was not captured: "
            + "; ".join(missing)
        )
    positional, named = arguments
    inputs = [x for x in (*positional, *named.values()) if isinstance(x, Tensor) and x.ndim > 1]
    sizes = {len(x) for x in inputs}
    # (position, batch, …) as torch's own layers read by default; images have channels there
    possible = sizes | {x.shape[1] for x in inputs if x.ndim < 4} | {1}
    for record in capture:
        is_known = record.num_windows == 1 or record.axes.positions is not None
        if not is_known or (sizes and record.batch_size // record.num_windows not in possible):
            raise RegardError(
                f"{record.name} attends within {record.batch_size} windows or groups of a batch of "
                f"{min(sizes, default=1)}, whose positions are not known; its layers cannot be "
                "combined"
            )


def _check_all_placed(capture: Capture, batch_index: int) -> None:
    """Raise if windows of a layer cannot be put back to positions: layers would be missing."""
    for record in capture:
        if (reason := find_unplaced(record, batch_index)) is not None:
            raise RegardError(
                f"layers cannot be combined, since {reason}; 'integrated_gradients' does not "
                "combine them"
            )


def _batch_size(capture: Capture) -> int:
    return next(record.batch_size // record.num_windows for record in capture)


def _check_extra_keys(capture: Capture) -> None:
    for record in capture:
        if record.has_extra_keys:
            raise RegardError(
                f"{record.name} has keys that are no positions (learned ones, zeros or summaries), "
                "which this method cannot propagate; 'integrated_gradients' can"
            )
        if record.kind == "causal" and record.offset:
            raise RegardError(
                f"{record.name} has {record.offset} keys before its first query, from a cache or "
                "learned, through which this method cannot propagate; 'integrated_gradients' can, "
                "or attribute one pass without a cache"
            )


def _row_list(attention_map: AttentionMap) -> str:
    """Return the token list that a map's queries read, which names them in other layers."""
    return attention_map.query_inputs or attention_map.queries


def _gradients(result: _Pass, score: Tensor, batch_index: int) -> list[Array]:
    gradients = result.gradient_capture.gradients(score)
    return [
        _item_gradient(record, gradient, batch_index).double().numpy()
        for record, gradient in zip(result.gradient_capture.capture, gradients, strict=True)
        if find_unplaced(record, batch_index) is None  # the trace leaves others out
    ]


def _item_gradient(record: CapturedAttention, gradient: Tensor, batch_index: int) -> Tensor:
    """Return the gradient (head, query, key) of one item, windows at their positions."""
    if not record.axes.needs_positions:
        return gradient[batch_index]
    windows: Tensor = gradient.unflatten(0, (-1, record.num_windows))
    return windows_to_positions(record, windows[batch_index], batch_index)


def _gradient_x_weight(trace: Trace, result: _Pass, batch_index: int) -> Trace:
    maps = tuple(
        replace(m, weights=np.maximum(gradient * m.weights, 0))
        for m, gradient in zip(
            trace.maps, _gradients(result, result.scores.sum(), batch_index), strict=True
        )
    )
    return replace(trace, maps=maps)


def _relevance(trace: Trace, result: _Pass, batch_index: int) -> Trace:
    """Return relevance: all of one output, or of each output the row of its own position."""
    relevances: list[dict[tuple[str, str], Array]] = []
    groups = _layers(trace, result)
    merged = merge_maps(trace.maps, groups)
    for score in result.scores:
        gradients = _gradients(result, score, batch_index)
        layers = [
            Layer(
                _row_list(m),
                m.keys,
                np.asarray(m.weights),
                np.concatenate([gradients[n] for n in group]),
            )
            for m, group in zip(merged, groups, strict=True)
        ]
        relevances.append(propagate_relevance(layers))
    if len(relevances) == 1:
        combined = relevances[0]
    else:
        own = _row_list(trace.maps[-1])  # the output is read from where the last layer writes
        rows = len(trace.tokens[own])
        if rows != len(relevances):
            raise RegardError(
                f"target must return one scalar, or one for each of {rows} positions, but there "
                f"are {len(relevances)}"
            )
        combined = {
            pair: np.stack([relevance[pair][row] for row, relevance in enumerate(relevances)])
            for pair in relevances[0]
            if pair[0] == own
        }
    maps = tuple(_relevance_map(trace, pair, value) for pair, value in combined.items())
    return replace(trace, maps=maps)


def _relevance_map(trace: Trace, pair: tuple[str, str], value: Array) -> AttentionMap:
    """Return relevance between two token lists as a map of the kind that attention has there."""
    queries, keys = pair
    like = next((m for m in trace.maps if (_row_list(m), m.keys) == pair), None)
    kind = "cross" if like is None and queries != keys else "self" if like is None else like.kind
    return AttentionMap(
        name="chefer",
        kind=kind,
        queries=queries if like is None else like.queries,
        keys=keys,
        query_inputs=None if like is None else like.query_inputs,
        weights=value[None].astype(np.float32),
    )


def _rollout(trace: Trace) -> Trace:
    """Return the rollout of every text, and of cross-attention to it."""
    lists = dict.fromkeys(m.keys for m in trace.maps if m.kind != "cross" and m.queries == m.keys)
    flows = {name: rollout(trace, name) for name in lists}
    first = {name: next(m for m in trace.maps if m.queries == m.keys == name) for name in lists}
    maps = [_flow_map(first[name], flow, "rollout") for name, flow in flows.items()]
    for m in trace.maps:
        if m.kind == "cross" and m.weights is not None:
            flow = m.weights.mean(0) @ flows[m.keys] if m.keys in flows else m.weights.mean(0)
            maps.append(_flow_map(m, flow, f"rollout of {m.name}"))
    return replace(trace, maps=tuple(maps))


def _layers(trace: Trace, result: _Pass) -> list[list[int]]:
    """Return the indices of the maps of each layer."""
    sources = result.gradient_capture.sources(list(result.embedded.vectors.values()))
    return group_heads(trace.maps, [_row_list(m) for m in trace.maps], sources)


def _flow_map(like: AttentionMap, flow: Array, name: str) -> AttentionMap:
    weights = flow[None].astype(np.float32)
    return replace(like, name=name, weights=weights, heads=(0,), value_norms=None)
