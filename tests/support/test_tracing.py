"""Attention of fake tensors and on the meta device, and while torch records operations."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from regard.attention import (
    Additive,
    Bilinear,
    Kernel,
    MultiHeadAttention,
    ScaledDot,
    attend,
    look,
    weights,
)
from regard.attention.scores import epanechnikov, make_score
from regard.config import ModelConfig
from regard.masks import causal, lengths, window
from regard.models import build
from regard.positions import ALiBi, Rotary, Sinusoidal

BATCH, HEADS, QUERIES, KEYS, WIDTH, VALUE_WIDTH = 2, 3, 5, 7, 12, 4
LONGER = 11

SCORES = {
    "dot": lambda: make_score("dot"),
    "scaled_dot": lambda: make_score("scaled_dot"),
    "capped": lambda: ScaledDot(cap=3.0),
    "cosine": lambda: make_score("cosine"),
    "gaussian": lambda: make_score("gaussian"),
    "additive": lambda: Additive(WIDTH, WIDTH),
    "bilinear": lambda: Bilinear(WIDTH, WIDTH),
    "epanechnikov": lambda: Kernel(epanechnikov, 9.0),
}
MASKS = {
    "none": None,
    "causal": causal(align="first"),
    "window": window(2, align="last"),
    "lengths": lengths([3, 6]),
    "tensor": torch.arange(QUERIES)[:, None] >= torch.arange(KEYS),
}


@pytest.fixture(params=list(SCORES))
def score(request):
    return SCORES[request.param]()


@pytest.fixture(params=list(MASKS))
def mask(request):
    return MASKS[request.param]


def random_vectors(queries=QUERIES):
    return (
        torch.randn(BATCH, HEADS, queries, WIDTH),
        torch.randn(BATCH, HEADS, KEYS, WIDTH),
        torch.randn(BATCH, HEADS, KEYS, VALUE_WIDTH),
    )


class Attention(nn.Module):
    """A score and a mask as a module, which is what torch exports."""

    def __init__(self, score, mask):
        super().__init__()
        self.score, self.mask = score, mask

    def forward(self, queries, keys, values):
        return attend(queries, keys, values, score=self.score, mask=self.mask)


def test_fake_tensors_give_the_shapes(score, mask):
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [mode.from_tensor(x) for x in random_vectors()]
        output = look(*fake, score=score, mask=mask)
        assert output.context.shape == (BATCH, HEADS, QUERIES, VALUE_WIDTH)
        assert output.weights.shape == (BATCH, HEADS, QUERIES, KEYS)
    # fake tensors remain fake outside of their mode
    assert weights(*fake[:2], mask=causal(align="first")).shape == output.weights.shape


def test_meta_tensors_give_the_shapes(score, mask):
    on_meta = [x.to("meta") for x in random_vectors()]
    output = look(*on_meta, score=score.to("meta"), mask=mask)
    assert output.context.shape == (BATCH, HEADS, QUERIES, VALUE_WIDTH)
    assert output.weights.shape == (BATCH, HEADS, QUERIES, KEYS)


@pytest.mark.parametrize("mask", ["causal", "lengths"], indirect=True)
@pytest.mark.parametrize("tracing_mode", ["real", "symbolic"])
@pytest.mark.usefixtures("unchecked")
def test_recorded_operations_agree_with_the_function(score, mask, tracing_mode):
    run = Attention(score, mask)
    graph = make_fx(run, tracing_mode=tracing_mode, _allow_non_fake_inputs=True)(*random_vectors())
    others = random_vectors()
    torch.testing.assert_close(graph(*others), run(*others), atol=1e-5, rtol=1e-4)


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # of torch.cond
@pytest.mark.parametrize("mask", [window(2, align="last"), causal(align="first")])
@pytest.mark.usefixtures("unchecked")
def test_exported_attention_takes_any_number_of_queries(score, mask):
    run = Attention(score, mask)
    shapes = ({2: torch.export.Dim("query", min=2, max=64)}, {}, {})
    exported = torch.export.export(run, random_vectors(), dynamic_shapes=shapes).module()
    for queries in (QUERIES, LONGER):
        vectors = random_vectors(queries)
        torch.testing.assert_close(exported(*vectors), run(*vectors), atol=1e-5, rtol=1e-4)


def models():
    config = ModelConfig(width=12, layers=1, heads=3)
    tokens = torch.tensor([[4, 5, 6], [7, 8, 0]])
    yield build(config, 20), (tokens, torch.tensor([3, 2]), torch.tensor([[1, 9], [1, 7]]))
    for positions in (Rotary(4), ALiBi(3)):
        yield MultiHeadAttention(12, 3, positions=positions), (torch.randn(BATCH, QUERIES, 12),)
    yield Sinusoidal(12), (torch.randn(BATCH, QUERIES, 12),)


@pytest.mark.parametrize(("model", "arguments"), list(models()))
def test_fake_tensors_leave_no_trace_in_a_module(model, arguments):
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        shape = model(*(mode.from_tensor(x) for x in arguments)).shape
    output = model(*arguments)
    assert type(output) is torch.Tensor
    assert output.shape == shape


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.usefixtures("unchecked")
def test_torchscript_traces_agree_with_the_module():
    for model, arguments in models():  # new ones, whose position tables must grow
        model.eval()
        with torch.no_grad():
            traced = torch.jit.trace(model, arguments)  # traces twice and compares the graphs
            torch.testing.assert_close(traced(*arguments), model(*arguments))
