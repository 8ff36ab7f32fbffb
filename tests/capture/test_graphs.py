"""Exported and traced graphs: attention keeps the names of the modules that it came from."""

import pytest
import torch
from torch import nn

from regard import edit, watch


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_q, self.to_k = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x):
        q, k = (f(x).unflatten(-1, (3, 4)).transpose(1, 2) for f in (self.to_q, self.to_k))
        return (q @ k.transpose(-2, -1)).softmax(-1) @ k


class Fused(Attention):
    def forward(self, x):
        q, k = (f(x).unflatten(-1, (3, 4)).transpose(1, 2) for f in (self.to_q, self.to_k))
        return nn.functional.scaled_dot_product_attention(q, k, k)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention(), Fused()])

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).transpose(1, 2).flatten(2)
        return x


def export(model, x):
    return torch.export.export(model, (x,)).module()


def trace(model, x):
    return torch.fx.symbolic_trace(model)


@pytest.mark.parametrize("to_graph", [export, trace])
def test_graph_keeps_names_and_weights(to_graph):
    model, x = Model().eval(), torch.randn(2, 5, 12)
    graph = to_graph(model, x)
    with torch.no_grad(), watch(model) as expected:
        model(x)
    with torch.no_grad(), watch(graph) as capture:
        graph(x)
    assert capture.module_names == expected.module_names == ("layers.0", "layers.1")
    for name in capture.module_names:
        torch.testing.assert_close(capture.weights(name), expected.weights(name))


def test_graph_inside_a_model_has_the_name_of_its_place_before_its_own():
    x = torch.randn(2, 5, 12)
    model = nn.Sequential(nn.Identity(), export(Model().eval(), x))
    with torch.no_grad(), watch(model) as capture:
        model(x)
    assert capture.module_names == ("1.layers.0", "1.layers.1")


def test_names_in_a_graph_select_modules():
    x = torch.randn(2, 5, 12)
    graph = export(Model().eval(), x)
    with torch.no_grad(), watch(graph, modules="layers.1") as capture, edit(graph) as edits:
        edits["layers.1"].heads(0).ablate()
        graph(x)
    assert capture.module_names == ("layers.1",)
    assert (capture[0].weights[:, 0] == 0).all() and (capture[0].weights[:, 1:] > 0).all()


def test_graph_without_names_keeps_its_own():
    x = torch.randn(2, 5, 12)
    graph = export(Model().eval(), x)
    for node in graph.graph.nodes:
        node.meta.pop("nn_module_stack", None)
    with torch.no_grad(), watch(graph) as capture:
        graph(x)
    assert capture.module_names == ("GraphModule",)
