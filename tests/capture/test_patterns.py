"""Attention in many people's styles: `watch` finds the true weights of every pattern."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from einops import rearrange
from torch import nn
from torch.nn.functional import pad

from capture.patterns import PATTERNS, THEMES, Attention
from regard import watch

EVERY_PATTERN = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)


def run(pattern, model, inputs):
    """Return the output of a pass whose random numbers are the same each time."""
    torch.manual_seed(2)
    return pattern.run(model, *inputs)


def collect_truth(pattern, model, inputs):
    """Return the output of an unwatched pass, and the true weights that it noted."""
    truth = []
    for module in model.modules():
        if isinstance(module, Attention):
            module.truth = truth
    output = run(pattern, model, inputs)
    for module in model.modules():
        if isinstance(module, Attention):
            module.truth = None
    return output, [join_steps(truth)] if pattern.steps else truth


def join_steps(rows):
    """Return rows that were noted step by step, over ever more keys, as one tensor."""
    keys = rows[-1].shape[-1]
    return torch.cat([pad(x, (0, keys - x.shape[-1])) for x in rows], dim=-2)


def probe(pattern, model, inputs):
    """Return the weights (batch, head, query, key) that an output shows when values are shifted.

    The value at one position is raised by one, for one position after the other. What that raises
    the output by is the weight of this position, whatever the layout inside the module.
    """
    model.to_out = nn.Identity()
    values = model.to_qkv if hasattr(model, "to_qkv") else model.to_v
    fused = hasattr(model, "to_qkv")
    baseline, weights = run(pattern, model, inputs), []
    number = values(inputs[-1]).shape[pattern.probe_axis]
    for position in range(number):

        def shift(module, args, out, position=position):
            shifted = out.clone().movedim(pattern.probe_axis, 0)
            shifted[position][..., 2 * out.shape[-1] // 3 if fused else 0 :] += 1
            return shifted.movedim(0, pattern.probe_axis)

        with values.register_forward_hook(shift):
            raised = run(pattern, model, inputs) - baseline
        batch = "b " if "b" in pattern.probe else ""
        per_head = rearrange(
            raised, f"{pattern.probe} -> {batch}h q d", h=pattern.sizes.heads
        ).mean(-1)
        weights.append(per_head if batch else per_head[None])
    return torch.stack(weights, dim=-1).detach()


def has_probe(pattern, model):
    has_values = hasattr(model, "to_qkv") or hasattr(model, "to_v")
    return pattern.probe is not None and has_values and hasattr(model, "to_out")


def mentions(entries, module):
    """Return whether one of the entries "module (file.py:line)" is about that module."""
    return any(entry.startswith(f"{module} (") for entry in entries)


@EVERY_PATTERN
def test_truth_of_pattern_is_right(pattern):
    model = pattern.build()
    _, truth = collect_truth(pattern, model, pattern.inputs())
    assert len(truth) == len(pattern.expected.kinds)
    for weights in truth:
        assert weights.ndim in (4, 5)
        if pattern.sums_to_one:
            torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    if has_probe(pattern, model):
        assert len(truth) == 1
        shown = probe(pattern, model, pattern.inputs()).to(truth[0])
        torch.testing.assert_close(truth[0], shown, atol=1e-5, rtol=0)


@EVERY_PATTERN
def test_pattern_is_captured(pattern):
    model, inputs, expected = pattern.build(), pattern.inputs(), pattern.expected
    unwatched, truth = collect_truth(pattern, model, inputs)
    model, inputs = pattern.build(), pattern.inputs()
    with watch(model, keep="all") as capture:
        watched = run(pattern, model, inputs)

    outputs = [x if isinstance(x, list | tuple) else [x] for x in (unwatched, watched)]
    assert all(torch.equal(x, y) for x, y in zip(*outputs, strict=True)), "the output differs"

    if expected.is_open:
        lists = (capture.values_not_found, capture.not_attention, capture.failures)
        assert len(capture) or any(lists), "silent"
        return
    assert [x.kind for x in capture] == list(expected.kinds), str(capture)
    for record, weights in zip(capture, truth, strict=True):
        assert record.weights.shape == weights.shape
        torch.testing.assert_close(
            record.weights, weights, atol=pattern.tolerance, rtol=0, check_dtype=False
        )
    names = expected.names or (type(model).__name__,) * len(capture)
    assert [x.name for x in capture] == list(names)

    normalisers = expected.normaliser
    normalisers = (normalisers,) if isinstance(normalisers, str) else normalisers
    for record in capture:
        assert record.normaliser in normalisers
        assert expected.applied in (None, bool(record.applied)), record.applied
        assert record.uncertain == ()
    check_lists(capture, expected)


TRACED_PATTERNS = {name: x for name, x in PATTERNS.items() if x.is_traced}


@pytest.mark.parametrize("pattern", TRACED_PATTERNS.values(), ids=TRACED_PATTERNS)
@torch.no_grad()
def test_trace_puts_windows_back_to_the_positions_that_shifting_values_shows(pattern):
    model, inputs = pattern.build(), pattern.inputs()
    with watch(model, keep="all") as capture:
        run(pattern, model, inputs)
    shown = probe(replace(pattern, probe="b q (h d)"), model, inputs)
    for index, expected in enumerate(shown):
        weights = torch.from_numpy(capture.trace(batch_index=index).maps[0].weights)
        positions = weights[..., : expected.shape[-1]]  # summaries of the text come after them
        torch.testing.assert_close(positions, expected, atol=1e-5, rtol=0, check_dtype=False)


def check_lists(capture, expected):
    """Assert that modules are listed where they should be, and nowhere else."""
    if expected.listed:
        entries = (*capture.values_not_found, *capture.failures)
        assert all(mentions(entries, x) for x in expected.listed), entries
        return
    if expected.may_be_listed:
        return
    assert capture.failures == ()
    for entries, modules in (
        (capture.values_not_found, expected.values_not_found),
        (capture.not_attention, expected.not_attention),
    ):
        assert all(mentions(entries, x) for x in modules), entries
        assert bool(entries) == bool(modules), entries


def test_there_are_patterns_of_every_theme():
    assert {x.theme for x in PATTERNS.values()} == set(THEMES)


def test_default_sizes_are_all_different():
    sizes = next(iter(PATTERNS.values())).sizes
    numbers = sorted((sizes.batch, sizes.heads, sizes.head_width, sizes.queries, sizes.keys))
    assert all(a < b for a, b in pairwise(numbers))
