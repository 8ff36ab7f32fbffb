"""Compile attention of every kind and compare it with eager: prints the outcome of each case.

A process of its own, because the compiler cannot trace the shape checks that tests switch on.
"""

import json
import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import jacfwd, jacrev

from regard.attention import (
    Additive,
    Kernel,
    MultiHeadAttention,
    ScaledDot,
    attend,
    look,
    make_score,
)
from regard.attention.scores import epanechnikov
from regard.masks import causal, lengths
from regard.positions import ALiBi, Rotary

NAMES = ("scaled_dot", "cosine", "gaussian", "bilinear", "additive", "capped", "epanechnikov")
NAMES += ("function", "module", "look", "multihead_rotary", "multihead_alibi")
NAMES += ("jacobian_gaussian", "jacobian_epanechnikov")
NAMES += ("lengths_scaled_dot", "lengths_gaussian", "lengths_additive", "lengths_capped")

Run = Callable[[Tensor, Tensor, Tensor], list[Tensor]]


class Weighted(nn.Module):
    """A module that scores pairs and is no Score."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 12))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (queries * self.weight) @ keys.mT


def build(name: str, mask: Tensor) -> Run:
    """Return the function of queries, keys and values that a case compiles."""
    scores = {
        "additive": lambda: Additive(12),
        "capped": lambda: ScaledDot(cap=4.0),
        "epanechnikov": lambda: Kernel(epanechnikov),
        "function": lambda: lambda queries, keys: (queries @ keys.mT).tanh(),
        "module": Weighted,
    }
    if name == "look":
        return lambda *x: list(look(*x, mask=causal("last") & lengths([4, 7])))
    if name == "multihead_rotary":
        rotary = MultiHeadAttention(12, 3, score="additive", positions=Rotary(4))
        return lambda q, k, v: [rotary(q[:, 0], k[:, 0], mask=lengths([3, 7]))]
    if name == "multihead_alibi":
        alibi = MultiHeadAttention(12, 3, key_heads=1, positions=ALiBi(3))
        return lambda q, k, v: [alibi(q[:, 0], mask=causal())]
    score = scores.get(name, lambda: make_score(name, (12, 12)))()
    return lambda *x: [attend(*x, score=score, mask=mask)]


def outputs_and_gradients(run: Run, inputs: list[Tensor]) -> list[Tensor]:
    outputs = run(*inputs)
    total = sum(output.square().sum() for output in outputs)
    gradients = torch.autograd.grad(total, inputs, allow_unused=True)
    return outputs + [gradient for gradient in gradients if gradient is not None]


def check(name: str) -> None:
    """Raise unless the compiled case agrees with eager, with its gradients."""
    torch.manual_seed(0)
    vectors = torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12), torch.randn(2, 3, 7, 12)
    if name.startswith("jacobian_"):
        check_jacobian(name.removeprefix("jacobian_"), *(x[0].double() for x in vectors))
        return
    if name.startswith("lengths_"):
        check_lengths(name.removeprefix("lengths_"))
        return
    mask = torch.rand(2, 3, 5, 7) > 0.4
    mask[1, 2, 3] = False
    run = build(name, mask)
    # generated code takes long to compile; the others are traced to the same graph without it
    backend = "inductor" if name == "additive" else "aot_eager"
    compiled = torch.compile(run, fullgraph=True, backend=backend)
    # queries 1000 times as long leave the range in which additive uses exponentials
    for factor in (1, 10, 1000):
        # a compiled Gaussian is a dot product at any distance; eager computes such distances in
        # float64. The gradients of keys sum queries of up to 2**12 times those of scores, which
        # are differences of numbers up to 2**5 and round by 2**-19: 2**-7 for each of five queries
        atol = 5 * 2**-7 if (name, factor) == ("gaussian", 1000) else 2e-5
        inputs = [x.clone().requires_grad_() for x in (factor * vectors[0], *vectors[1:])]
        for computed, expected in zip(
            outputs_and_gradients(compiled, inputs),
            outputs_and_gradients(run, inputs),
            strict=True,
        ):
            torch.testing.assert_close(computed, expected, rtol=1e-4, atol=atol)


def check_jacobian(name: str, queries: Tensor, keys: Tensor, values: Tensor) -> None:
    """Compare a compiled reverse-mode Jacobian of distances with the forward-mode one."""
    score = make_score(name, (12, 12))
    run = partial(attend, keys=keys, values=values, score=score, backend="dense")
    compiled = torch.compile(jacrev(run), backend="aot_eager")
    torch.testing.assert_close(compiled(queries), jacfwd(run)(queries))


def check_lengths(name: str) -> None:
    """Raise unless two graphs at most, one of them of dynamic sizes, serve all lengths."""
    graphs = []

    def count_graphs(graph: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    score = {"additive": Additive(12), "capped": ScaledDot(cap=4.0)}.get(name) or name
    run = partial(attend, score=score, mask=causal("last") & lengths([4, 7]))
    compiled = torch.compile(run, backend=count_graphs)
    for queries, keys in ((5, 7), (6, 9), (7, 8), (9, 16), (20, 31)):
        vectors = torch.randn(2, 3, queries, 12), torch.randn(2, 3, keys, 12)
        torch.testing.assert_close(compiled(*vectors), run(*vectors), rtol=1e-4, atol=2e-5)
    assert len(graphs) <= 2, f"{len(graphs)} graphs for five lengths"


def main() -> None:
    warnings.filterwarnings("error", message=".*lru_cache")  # a cache that the compiler bypasses
    problems = {}
    for name in NAMES:
        torch.compiler.reset()  # or cases of one code object reach the recompilation limit
        try:
            check(name)
            problems[name] = ""
        except Exception as error:
            problems[name] = f"{type(error).__name__}: {error}"[:2000]
    print(json.dumps(problems))


if __name__ == "__main__":
    main()
