"""Random calls of every score, mask, dtype, shape and backend against a plain float64 reference."""

import pytest
import torch

from helpers.random_attention import Case, compute_reference, draw_case
from regard.attention import attend, look
from regard.attention.backends import blockwise

CASES, SLICES = 30_000, 30


def find_problem(case: Case) -> str:
    """Run a case; return what is wrong with it, or nothing."""
    inputs = [
        x.clone().requires_grad_(case.needs_grad) for x in (case.queries, case.keys, case.values)
    ]
    arguments = {"score": case.score, "mask": case.mask, "bias": case.bias, "backend": case.backend}
    output, context = look(*inputs, **arguments), attend(*inputs, **arguments)
    reference, gradients = compute_reference(case)
    if not torch.equal(output.context, context):
        return "the context of look is not that of attend"
    if output.weights.dtype != case.queries.dtype or context.dtype != case.values.dtype:
        return "wrong dtype"
    computed = [x.detach().double() for x in (context, output.weights)]
    if case.single_query:
        computed = [x.unsqueeze(-2) for x in computed]
    for name, got in zip(("context", "weights"), computed, strict=True):
        if not got.isfinite().all():
            return f"{name} is not finite"
        expected = getattr(reference, name)
        excess = (got - expected).abs() - getattr(reference, f"{name.rstrip('s')}_tolerance")
        if excess.numel() and excess.max() > 0:
            return (
                f"{name} is off by {(got - expected).abs().max():.3g}, {excess.max():.3g} too much"
            )
    if (computed[1][~case.allowed] != 0).any():
        return "a masked key has a weight"
    return find_gradient_problem(case, inputs, context, reference, gradients)


def find_gradient_problem(case, inputs, context, reference, gradients) -> str:
    """Compare the gradients of the sum of squares of the context."""
    if not case.needs_grad:
        return ""
    computed = torch.autograd.grad(
        context.float().square().sum()
        if case.queries.dtype != torch.float64
        else context.square().sum(),
        inputs,
        allow_unused=True,
        materialize_grads=True,
    )
    for name, got, expected in zip(("queries", "keys", "values"), computed, gradients, strict=True):
        if not got.isfinite().all():
            return f"the gradient of {name} is not finite"
        tolerance = reference.relative_error * (
            reference.gradient_scale + expected.abs().max().item() if expected.numel() else 0.0
        )
        error = (got.double() - expected).abs().max().item() if got.numel() else 0.0
        if reference.is_smooth and error > tolerance + torch.finfo(case.queries.dtype).tiny:
            return f"the gradient of {name} is off by {error:.3g}, more than {tolerance:.3g}"
    return ""


def check_cases(seeds, monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK_SCORES", 16)
    cases = map(draw_case, seeds)
    problems = [f"{case}: {problem}" for case in cases if (problem := find_problem(case))]
    assert not problems, f"{len(problems)} problems\n" + "\n".join(problems[:20])


def test_sample_of_random_cases_agrees_with_float64(monkeypatch):
    check_cases(range(200), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
def test_random_cases_agree_with_float64(part, monkeypatch):
    size = CASES // SLICES
    check_cases(range(part * size, (part + 1) * size), monkeypatch)
