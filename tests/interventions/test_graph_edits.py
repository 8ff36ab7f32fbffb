"""Edits of attention over the edges of a graph: agreement with products of matrices."""

import pytest
import torch
from torch import nn

import regard
from capture.patterns import PATTERNS
from regard import analysis

# their values are one projection of the nodes
NAMES = {
    "GraphAttention": "lin",
    "GraphAttention-heads=1": "lin",
    "GraphAttention-edges=heads": "lin",
    "AsManyEdgesAsNodes": "lin",
    "RingGraph": "lin",
    "Multigraph": "lin",
    "GraphTransformer": "v",
    "GraphTransformer-edges=heads": "v",
    "MessagesFlattened": "v",
    "MessagesByEinsum": "v",
    "MessagesByIndexPut": "v",
    "MessagesByScatterReduce": "v",
    "ExponentialsWithoutMaximum": "v",
    "BipartiteGraph": "v",
}


@pytest.fixture(params=NAMES)
def case(request):
    """Return a model, its inputs, and the values (head, key, width) of its nodes."""
    pattern = PATTERNS[f"graphs.{request.param}"]
    model, inputs = pattern.build(), pattern.inputs()
    values = getattr(model, NAMES[request.param])(inputs[0])
    return model, inputs, values.unflatten(-1, (model.heads, -1)).transpose(0, 1)


def weights_of(model, inputs):
    with regard.watch(model) as capture:
        model(*inputs)
    return capture[0].weights[0]


def context_of(model, inputs):
    """Return the context (head, query, width)."""
    return model(*inputs).flatten(1).unflatten(-1, (model.heads, -1)).transpose(0, 1)


def test_zeroed_head_has_zero_context_and_the_others_are_bit_identical(case):
    model, inputs, _ = case
    before, head = context_of(model, inputs), model.heads - 1
    with regard.edit(model) as edits:
        edits["*"].heads(head).ablate()
        after = context_of(model, inputs)
    assert not after[head].any() and before[head].any()
    assert torch.equal(after[:head], before[:head])
    assert torch.equal(context_of(model, inputs), before)


@pytest.mark.parametrize("renormalise", [True, False])
def test_blocked_edges_carry_nothing(case, renormalise):
    model, inputs, values = case
    weights = weights_of(model, inputs)
    query, key = weights[0].nonzero()[0].tolist()
    expected = weights.clone()
    expected[0, query, key] = 0
    if renormalise and expected[0, query].any():
        expected[0, query] /= expected[0, query].sum()
    with regard.watch(model) as capture, regard.edit(model) as edits:
        edits["*"].heads(0).block(queries=[query], keys=[key], renormalise=renormalise)
        context = context_of(model, inputs)
    torch.testing.assert_close(context, expected @ values)
    torch.testing.assert_close(capture[0].weights[0], expected)


def test_weights_that_are_set_reach_the_values(case):
    model, inputs, values = case
    weights = weights_of(model, inputs)
    new = torch.rand(weights.shape) * (weights != 0)
    with regard.edit(model) as edits:
        edits["*"].set_weights(new)
        context = context_of(model, inputs)
    torch.testing.assert_close(context, new @ values)
    assert new.any()


def test_temperature_divides_the_scores(case):
    model, inputs, values = case
    weights = weights_of(model, inputs)
    edges = inputs[-1]
    if edges.unique(dim=1).shape != edges.shape:
        with (
            pytest.raises(regard.RegardError, match="several edges between the same nodes"),
            regard.edit(model) as edits,
        ):
            edits["*"].scale(temperature=2.0)
            model(*inputs)
        return
    expected = weights.sqrt() / weights.sqrt().sum(-1, keepdim=True).clamp_min(1e-12)
    with regard.edit(model) as edits:
        edits["*"].scale(temperature=2.0)
        context = context_of(model, inputs)
    torch.testing.assert_close(context, expected @ values)


def test_edits_compose_and_gates_scale_contexts(case):
    model, inputs, values = case
    weights = weights_of(model, inputs)
    uniform = (weights != 0) / (weights != 0).sum(-1, keepdim=True).clamp_min(1)
    with regard.edit(model) as edits:
        edits["*"].set_weights("uniform")
        edits["*"].heads(0).gate(3.0)
        context = context_of(model, inputs)
    factors = torch.ones(model.heads, 1, 1)
    factors[0] = 3.0
    torch.testing.assert_close(context, factors * (uniform @ values))


def test_gradients_flow_through_edited_edges(case):
    model, inputs, _ = case
    factor = torch.ones((), requires_grad=True)
    with regard.edit(model) as edits:
        edits["*"].set_weights(lambda weights: weights * factor)
        context = context_of(model, inputs)
    gradient = torch.autograd.grad(context.square().sum() / 2, factor)[0]
    torch.testing.assert_close(gradient, context.square().sum())  # it is linear in the factor


def test_weight_without_an_edge_is_refused():
    pattern = PATTERNS["graphs.GraphTransformer"]
    model = pattern.build()
    with (
        pytest.raises(regard.RegardError, match="no edge from node 6 to node 0"),
        regard.edit(model) as edits,
    ):
        weights = torch.zeros(7, 7)
        weights[0, 6] = 1.0
        edits["*"].set_weights(weights)
        model(*pattern.inputs())


class AddedToNodes(nn.Module):
    """Messages are added to the nodes themselves, in place, and what that returns is not used."""

    def __init__(self):
        super().__init__()
        self.graph = PATTERNS["graphs.GraphTransformer"].build()
        self.graph.propagate = self.propagate
        self.heads = self.graph.heads

    def forward(self, x, edges):
        self.nodes = x.unflatten(-1, (self.heads, -1)).clone()
        self.graph(x, edges)
        return self.nodes

    def propagate(self, alpha, values, target, number):
        self.nodes.index_add_(0, target, values * alpha[..., None])


def test_messages_are_edited_where_they_are_added_to_nodes_in_place():
    model, inputs = AddedToNodes(), PATTERNS["graphs.GraphTransformer"].inputs()
    before = model(*inputs)
    with regard.edit(model) as edits:
        edits["*"].heads(1).ablate()
        after = model(*inputs)
    nodes = inputs[0].unflatten(-1, (model.heads, -1))
    torch.testing.assert_close(after[:, 1], nodes[:, 1])
    assert torch.equal(after[:, [0, 2]], before[:, [0, 2]])
    assert not torch.allclose(before[:, 1], nodes[:, 1])


def test_importance_of_heads_of_a_graph():
    pattern = PATTERNS["graphs.GraphTransformer"]
    model, inputs = pattern.build(), pattern.inputs()
    result = analysis.head_importance(
        model, [inputs], lambda output, batch: output[:, 2].sum(), progress=False
    )
    value = model(*inputs)[:, 2].sum().item()
    assert result.ablation.values.tolist() == [[0, 0, pytest.approx(-value, rel=1e-4)]]
    assert result.gradient.values.tolist() == [[0, 0, pytest.approx(abs(value), rel=1e-4)]]
