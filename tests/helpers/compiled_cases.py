"""Compile attention of every kind and compare it with itself: prints who agreed.

A process of its own, because the compiler cannot follow the shape checks that tests switch on.
"""

import json
import warnings
from functools import partial

import torch
from torch.func import jacfwd, jacrev

from regard.attention import Additive, MultiHeadAttention, ScaledDot, attend, look, make_score
from regard.masks import causal, lengths
from regard.positions import ALiBi, Rotary

warnings.filterwarnings("error", message=".*lru_cache")  # a cache that the compiler goes round
torch.manual_seed(0)
VECTORS = (torch.randn(2, 3, 5, 12), torch.randn(2, 3, 7, 12), torch.randn(2, 3, 7, 12))
MASK = torch.rand(2, 3, 5, 7) > 0.4
MASK[1, 2, 3] = False


def cases():
    """Name functions of (queries, keys, values) to be compiled; each gives several results."""
    folding = [
        make_score(name, (12, 12)) for name in ("scaled_dot", "cosine", "gaussian", "bilinear")
    ]
    yield "folding", lambda *x: [attend(*x, score=score, mask=MASK) for score in folding]
    additive = Additive(12)
    yield "additive", lambda *x: [attend(*x, score=additive, mask=MASK)]
    others = [ScaledDot(cap=4.0), make_score("epanechnikov")]
    yield "others", lambda *x: [attend(*x, score=score, mask=MASK) for score in others]
    yield "look", lambda *x: look(*x, mask=causal("last") & lengths([4, 7]))
    turned = MultiHeadAttention(12, 3, score="additive", positions=Rotary(4))
    biased = MultiHeadAttention(12, 3, key_heads=1, positions=ALiBi(3))
    yield (
        "heads",
        lambda q, k, v: [
            turned(q[:, 0], k[:, 0], mask=lengths([3, 7])),
            biased(q[:, 0], mask=causal()),
        ],
    )


def answers(run, inputs):
    """Give the results and the gradients of their squares."""
    results = list(run(*inputs))
    total = sum(result.square().sum() for result in results)
    gradients = torch.autograd.grad(total, inputs, allow_unused=True)
    return results + [g for g in gradients if g is not None]


def check_jacobians():
    """Compile Jacobians of distances, and compare them with those taken forwards."""
    queries, keys, values = (vectors[0].double() for vectors in VECTORS)
    for name in ("gaussian", "epanechnikov"):
        run = partial(
            attend, keys=keys, values=values, score=make_score(name, (12, 12)), backend="dense"
        )
        compiled = torch.compile(jacrev(run), backend="aot_eager")
        torch.testing.assert_close(compiled(queries), jacfwd(run)(queries))


def main():
    check_jacobians()
    agreed, wrong = [], {}
    for name, run in cases():
        # generated code takes long to compile; the rest is traced to the same graph without it
        backend = "inductor" if name == "additive" else "aot_eager"
        compiled = torch.compile(run, fullgraph=True, backend=backend)
        try:
            # queries 1000 times as long leave the range in which additive takes exponentials
            for far in (1, 1000):
                inputs = [x.clone().requires_grad_() for x in (far * VECTORS[0], *VECTORS[1:])]
                for got, wanted in zip(
                    answers(compiled, inputs), answers(run, inputs), strict=True
                ):
                    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=2e-5)
            agreed.append(name)
        except Exception as problem:
            wrong[name] = f"{type(problem).__name__}: {problem}"[:2000]
    print(json.dumps({"agreed": agreed, "wrong": wrong}))


if __name__ == "__main__":
    main()
