"""The neuron view: vectors behind attention weights."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.capture.calls import MaterializedWeights, SDPACall
from regard.errors import RegardError
from regard.viz import plot_neuron_view

TOKENS = ["the", "white", "cat", "broke", "cups"]


def make_record(call, heads=(0, 1, 2, 3), keeps_weights=True):
    """Return what a capture would keep of a call."""
    weights = call.weights(slice(None), list(heads), slice(None)) if keeps_weights else None
    vectors = call.vectors()
    return SimpleNamespace(name="layer", heads=list(heads), vectors=vectors, weights=weights)


@pytest.fixture
def call():
    torch.manual_seed(0)
    queries, keys = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8)
    return SDPACall(queries, keys, keys, is_causal=True, scale=0.7)


def bars_of(axes):
    return [bar.get_width() for bar in axes.containers[0]]


def panels(figure):
    """Return the panels by title."""
    return {axes.get_title(): axes for axes in figure.axes if axes.get_title()}


def test_products_and_their_sum_are_those_of_the_cell(call):
    drawn = panels(plot_neuron_view(make_record(call), head=3, query=4, batch_index=1))
    query, keys = call.queries[1, 3, 4].double(), call.keys[1, 1].double()
    expected = query * keys * 0.7
    products = drawn["query × key × 0.7"].images[0].get_array()
    np.testing.assert_allclose(products, expected, rtol=1e-6)
    np.testing.assert_array_equal(drawn["keys"].images[0].get_array(), keys)
    np.testing.assert_array_equal(drawn["query: 4"].images[0].get_array(), query[None])
    np.testing.assert_allclose(bars_of(drawn["sum: score"]), expected.sum(1), rtol=1e-6)
    weights = expected.sum(1).softmax(0)  # the last query sees all keys
    np.testing.assert_allclose(bars_of(drawn["weight"]), weights, rtol=1e-5)


def test_weights_belong_to_the_head_among_those_kept(call):
    record = make_record(call, heads=[1, 3])
    drawn = panels(plot_neuron_view(record, head=3, query=2, batch_index=1))
    np.testing.assert_allclose(bars_of(drawn["weight"]), record.weights[1, 1, 2], rtol=1e-6)


def test_view_without_kept_weights_ends_with_the_scores(call):
    drawn = panels(plot_neuron_view(make_record(call, keeps_weights=False), query=0))
    assert "sum: score" in drawn and "weight" not in drawn


def test_chosen_keys_are_labelled_by_their_tokens(call):
    figure = plot_neuron_view(make_record(call), query=-1, keys=[3, 1], tokens=TOKENS)
    drawn = panels(figure)
    labels = [label.get_text() for label in drawn["keys"].get_yticklabels()]
    assert labels == ["broke", "white"]
    assert "query: cups" in drawn
    assert figure.get_suptitle() == "layer · head 0 · query cups"


def test_heaviest_keys_are_drawn_by_default():
    weights = torch.full((1, 1, 1, 40), 0.001)
    weights[..., [5, 20, 39]] = 0.3
    queries, keys = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 40, 8)
    record = make_record(SDPACall(queries, keys, keys), heads=[0])
    record.weights = weights
    labels = [x.get_text() for x in panels(plot_neuron_view(record))["keys"].get_yticklabels()]
    assert len(labels) == 16 and {"5", "20", "39"} <= {*labels}
    assert [int(x) for x in labels] == sorted(int(x) for x in labels)


def test_record_without_vectors_names_the_argument_that_keeps_them():
    record = make_record(MaterializedWeights(torch.rand(1, 2, 3, 3)), heads=[0, 1])
    with pytest.raises(RegardError, match=r"layer are not known: .*keep_vectors=True"):
        plot_neuron_view(record)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"head": 4}, "head must be from 0 to 3, but it is 4"),
        ({"query": 5}, "query must be from 0 to 4, but it is 5"),
        ({"keys": [7]}, r"keys must be positions from 0 to 4, but are \[7\]"),
        ({"batch_index": 2}, "batch must be from 0 to 1, but it is 2"),
        ({"tokens": ["a"]}, "there are 5 positions of key, but 1 tokens"),
    ],
)
def test_missing_cells_are_refused(call, arguments, message):
    with pytest.raises(RegardError, match=message):
        plot_neuron_view(make_record(call), **arguments)
