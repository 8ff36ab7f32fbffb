"""`regard.edit` in attention of many people's styles: weights that are set reach the values.

The truth is that of the patterns: what an output shows when the values of one position are shifted.
"""

import pytest
import torch

import regard
from capture.patterns import PATTERNS
from capture.test_patterns import collect_truth, has_probe, probe, run


def _is_probed(pattern):
    """Return whether the weights of a pattern show in its output, position by position."""
    is_sure = pattern.expected.kinds and not pattern.expected.is_open and not pattern.steps
    is_whole = pattern.theme != "parts"
    return is_sure and is_whole and not pattern.train and has_probe(pattern, pattern.build())


PROBED = {name: pattern for name, pattern in PATTERNS.items() if _is_probed(pattern)}
USUAL_SIZES = {name: pattern for name, pattern in PROBED.items() if "-" not in name}
EVERY_PROBED_PATTERN = pytest.mark.parametrize("pattern", PROBED.values(), ids=PROBED)


def weights_under_edits(pattern, change):
    """Return the true weights without and with edits; skip windows, which a probe does not see."""
    _, truth = collect_truth(pattern, pattern.build(), pattern.inputs())
    if len(truth) != 1 or truth[0].ndim != 4:
        pytest.skip("its weights are no single (batch, head, query, key)")
    model = pattern.build()
    with regard.edit(model) as edits:
        change(edits["*"], truth[0])
        return truth[0], probe(pattern, model, pattern.inputs())


@EVERY_PROBED_PATTERN
def test_weights_that_are_set_reach_the_values(pattern):
    new = {}

    def set_random(selection, truth):
        new["weights"] = torch.rand(truth.shape)
        selection.set_weights(new["weights"])

    _, shown = weights_under_edits(pattern, set_random)
    torch.testing.assert_close(shown, new["weights"], atol=2e-5, rtol=0, check_dtype=False)


@EVERY_PROBED_PATTERN
def test_one_edge_of_one_head_is_removed(pattern):
    def block(selection, truth):
        last = truth.shape[1] - 1
        selection.heads(last).block(queries=[1], keys=[0], renormalise=False)

    truth, shown = weights_under_edits(pattern, block)
    expected = truth.clone()
    expected[:, -1, 1, 0] = 0
    torch.testing.assert_close(shown, expected, atol=2e-5, rtol=0, check_dtype=False)


def gradients(pattern, *changes):
    """Return the gradient of an output by each parameter and input, under edits."""
    torch.manual_seed(4)
    model = pattern.build()
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in pattern.inputs()]
    leaves = [x for x in (*model.parameters(), *inputs) if x.requires_grad]
    with regard.edit(model) as edits:
        for change in changes:
            edits["*"].set_weights(change)
        output = run(pattern, model, inputs)
        score = (output * torch.linspace(-1, 1, output.numel()).view(output.shape)).sum()
        return torch.autograd.grad(score, leaves, allow_unused=True)


@pytest.mark.parametrize("pattern", USUAL_SIZES.values(), ids=USUAL_SIZES)
def test_weights_that_are_set_to_themselves_keep_all_gradients(pattern):
    try:
        expected = gradients(pattern)
    except RuntimeError:
        pytest.skip("it has no gradients")
    found = gradients(pattern, lambda weights: weights * 1.0)
    size = max(float(x.abs().max()) for x in expected if x is not None)
    for one, other in zip(found, expected, strict=True):
        if one is not None or other is not None:
            one, other = (torch.zeros(()) if x is None else x for x in (one, other))
            torch.testing.assert_close(
                *torch.broadcast_tensors(one, other), atol=1e-4 * size, rtol=0
            )


IN_PARTS = {name: x for name, x in PATTERNS.items() if x.theme == "parts" and "-" not in name}


@pytest.mark.parametrize("pattern", IN_PARTS.values(), ids=IN_PARTS)
def test_weights_that_are_multiplied_in_parts_are_refused(pattern):
    model = pattern.build()
    with (
        pytest.raises(regard.RegardError, match="splits its weights and multiplies each part"),
        regard.edit(model) as edits,
    ):
        edits["*"].scale(temperature=2.0)
        pattern.run(model, *pattern.inputs())
