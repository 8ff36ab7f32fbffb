"""`regard.edit` in attention of many people's styles: weights that are set reach the values.

The truth is that of the patterns: what an output shows when the values of one position are shifted.
"""

import pytest
import torch

import regard
from capture.patterns import PATTERNS
from capture.test_patterns import collect_truth, has_probe, probe


def _is_probed(pattern):
    """Return whether the weights of a pattern show in its output, position by position."""
    is_sure = pattern.expected.kinds and not pattern.expected.is_open and not pattern.steps
    is_whole = pattern.theme != "parts"
    return is_sure and is_whole and not pattern.train and has_probe(pattern, pattern.build())


PROBED = {name: pattern for name, pattern in PATTERNS.items() if _is_probed(pattern)}
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
