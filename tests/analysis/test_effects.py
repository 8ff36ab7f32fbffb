"""Effects of ablation, knockout and patching on models where the answer is known."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import regard
from regard import analysis

HEADS, WIDTH = 3, 12


class OneHead(nn.Module):
    """Attention whose output reads head 1 alone."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.project = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        rows = self.project(x).chunk(3, -1)
        queries, keys, values = (r.unflatten(-1, (HEADS, -1)).transpose(1, 2) for r in rows)
        return scaled_dot_product_attention(queries, keys, values)[:, 1]


def squares(output, batch):
    return output.square().mean()


def test_only_the_head_that_is_read_is_important():
    batches = [torch.randn(2, 5, WIDTH) for _ in range(2)]
    model = OneHead()
    result = analysis.head_importance(model, batches, squares, progress=False)
    base = np.mean([squares(model(x), x).item() for x in batches])
    np.testing.assert_allclose(result.ablation.values, [[0, -base, 0]], atol=1e-7)
    # the metric is the factor squared times itself: its derivative is twice the metric
    np.testing.assert_allclose(result.gradient.values, [[0, 2 * base, 0]], rtol=1e-5)
    assert result.gradient.ranking()[0] == ("OneHead", 1)
    assert result.rank_correlation == pytest.approx(1.0)


def test_ranks_of_equal_values_are_their_mean():
    def effects(values):
        return analysis.HeadEffects(("a",), np.array([values]), "")

    result = analysis.HeadImportance(effects([1.0, -2.0, 3.0, 3.0]), effects([4.0, 3.0, 1.0, 2.0]))
    ranks = [1, 2, 3.5, 3.5], [4, 3, 1, 2]
    assert result.rank_correlation == pytest.approx(np.corrcoef(*ranks)[0, 1])


def test_clean_pattern_of_the_head_that_is_read_restores_what_depends_on_it():
    model, x = OneHead(), torch.randn(1, 5, WIDTH)
    corrupted = x.clone()
    corrupted[:, 0] += 1.0
    shares = analysis.patch(model, x, corrupted, squares, progress=False).values[0]
    assert shares[0] == shares[2] == 0 and shares[1] != 0
    with regard.watch(model) as capture:
        model(x)
    values = model.project(corrupted).chunk(3, -1)[2].unflatten(-1, (HEADS, -1)).transpose(1, 2)
    patched = squares(capture[0].weights[:, 1] @ values[:, 1], x).item()
    clean, base = squares(model(x), x).item(), squares(model(corrupted), x).item()
    assert shares[1] == pytest.approx((patched - base) / (clean - base), rel=1e-4)


def test_clean_context_of_the_head_that_is_read_restores_everything():
    model, clean, corrupted = OneHead(), *torch.randn(2, 1, 5, WIDTH)
    result = analysis.patch(model, clean, corrupted, squares, of="context", progress=False)
    np.testing.assert_allclose(result.values, [[0, 1, 0]], atol=1e-5)


@pytest.mark.usefixtures("unchecked")
def test_patching_of_something_else_is_refused():
    x = torch.randn(1, 5, WIDTH)
    with pytest.raises(regard.RegardError, match="of must be 'weights' or 'context'"):
        analysis.patch(OneHead(), x, x, squares, of="values")


def test_heads_are_ablated_for_metrics_without_gradient():
    batches = [torch.randn(2, 5, WIDTH) for _ in range(3)]
    result = analysis.ablate_heads(
        OneHead(), batches, lambda output, batch: int((output != 0).any()), progress=False
    )
    np.testing.assert_array_equal(result.values, [[0, -1, 0]])
    assert result.ranking()[-1] == ("OneHead", 1)


def test_knocked_out_edge_concerns_its_query_alone():
    model, x = OneHead(), torch.randn(1, 5, WIDTH)
    result = analysis.knockout_matrix(
        model, x, lambda output, _: output[0, 3].sum(), queries=[2, 3], keys=[0, 4], progress=False
    )
    assert np.abs(result.values[0]).max() < 1e-6 < 1e-4 < np.abs(result.values[1]).min()


def test_patching_equal_inputs_is_refused():
    x = torch.randn(1, 5, WIDTH)
    with pytest.raises(regard.RegardError, match="must differ in the metric"):
        analysis.patch(OneHead(), x, x, squares, progress=False)


def test_results_are_plotted():
    pytest.importorskip("matplotlib")
    x = torch.randn(1, 5, WIDTH)
    result = analysis.head_importance(OneHead(), [x], squares, progress=False)
    assert result.plot("importance").axes
    edges = analysis.knockout_matrix(OneHead(), x, squares, [1], [0, 2], progress=False)
    assert edges.plot().axes[0].get_xlabel() == "key"


class SharedLayers(nn.Module):
    """Two layers with the same parameters, as in ALBERT."""

    def __init__(self):
        super().__init__()
        self.layer = OneHead()

    def forward(self, x):
        return self.layer(self.layer(x).repeat(1, 1, HEADS))


def test_patching_a_module_that_is_called_twice_is_refused():
    x = torch.randn(1, 5, WIDTH)
    with pytest.raises(regard.RegardError, match=r"layer was called 2 times"):
        analysis.patch(SharedLayers(), x, x + 1, squares, progress=False)


def test_knocked_out_edges_are_labelled_by_tokens():
    pytest.importorskip("matplotlib")
    x = torch.randn(1, 4, WIDTH)
    found = analysis.knockout_matrix(OneHead(), x, squares, [1, 3], [0, 2], progress=False)
    axes = found.plot(tokens=["the", "old", "cat", "sleeps"]).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["the", "cat"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["old", "sleeps"]
    with pytest.raises(regard.RegardError, match="tokens must cover position 3, but there are 3"):
        found.plot(tokens=["the", "old", "cat"])


@pytest.mark.parametrize(
    ("metric", "error", "message"),
    [
        (lambda output, batch: output.mean(-1), regard.RegardError, r"scalar.* shape \(1, 5\)"),
        (lambda output, batch: output.argmax().float(), regard.RegardError, "differentiable"),
        (lambda output, batch: output.sum().item(), regard.RegardError, "differentiable"),
        (lambda output, batch: [output.sum()], TypeError, "what metric returns"),
    ],
)
def test_metric_must_be_a_differentiable_scalar(metric, error, message):
    with pytest.raises(error, match=message):
        analysis.head_importance(OneHead(), [torch.randn(1, 5, WIDTH)], metric, progress=False)


def test_metric_of_a_knockout_may_be_a_number():
    result = analysis.knockout_matrix(
        OneHead(), torch.randn(1, 5, WIDTH), lambda output, batch: float(output.sum()), [1], [0],
        progress=False,
    )  # fmt: skip
    assert result.values.shape == (1, 1)


class WithDropout(nn.Sequential):
    def __init__(self):
        super().__init__(OneHead(), nn.Dropout(0.5))


@pytest.mark.parametrize("measure", ["head_importance", "knockout_matrix", "patch"])
def test_dropout_is_refused(measure):
    model, x = WithDropout(), torch.randn(1, 5, WIDTH)
    arguments = {
        "head_importance": ([x], squares),
        "knockout_matrix": (x, squares, [1], [0]),
        "patch": (x, x + 1, squares),
    }[measure]
    function = getattr(analysis, measure)
    with pytest.raises(regard.RegardError, match=r"evaluation mode.*model\.eval\(\)"):
        function(model, *arguments, progress=False)
    function(model.eval(), *arguments, progress=False)


class Unread(nn.Module):
    """Two layers, of which the output reads the first alone."""

    def __init__(self):
        super().__init__()
        self.read, self.unread = OneHead(), OneHead()

    def forward(self, x):
        self.unread(x)
        return self.read(x)


def test_module_that_the_metric_does_not_depend_on_has_no_importance():
    model, x = Unread(), torch.randn(1, 5, WIDTH)
    with torch.inference_mode():
        result = analysis.head_importance(model, [x], squares, progress=False)
    by_module = dict(zip(result.gradient.modules, result.gradient.values, strict=True))
    assert by_module["read"].any() and not by_module["unread"].any()


@pytest.mark.filterwarnings("error")
def test_rank_correlation_of_a_single_head_is_undefined():
    one = analysis.HeadEffects(("a",), np.array([[1.0]]), "")
    assert np.isnan(analysis.HeadImportance(one, one).rank_correlation)
