import pytest
import torch
from torch.nn.functional import cosine_similarity

from regard.attention import Cosine, attend, weights
from regard.errors import RegardError


def test_scores_are_torchs_cosine_similarity_over_the_temperature():
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    expected = cosine_similarity(queries[:, :, None], keys[:, None], dim=-1)
    torch.testing.assert_close(Cosine(temperature=0.1)(queries, keys), expected / 0.1)


def test_weights_are_invariant_to_the_norms():
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    scaled = weights(1000 * queries, keys * torch.rand(2, 7, 1).add(0.1), score="cosine")
    torch.testing.assert_close(scaled, weights(queries, keys, score="cosine"))


def test_zero_vector_has_cosine_zero_and_a_finite_gradient():
    queries = torch.zeros(3, 4, requires_grad=True)
    keys = torch.randn(6, 4)
    context = attend(queries, keys, score="cosine")
    torch.testing.assert_close(context, keys.mean(0).expand(3, 4))
    context.sum().backward()
    assert queries.grad.isfinite().all()


def test_lower_temperature_gives_sharper_weights():
    queries, keys = torch.randn(5, 12), torch.randn(7, 12)
    sharp, soft = (weights(queries, keys, score=Cosine(t)).amax(-1) for t in (0.05, 5.0))
    assert (sharp > soft).all()
    assert torch.allclose(soft, torch.tensor(1 / 7), atol=0.05)


def test_learnable_temperature_is_learned_and_stays_above_zero():
    queries, keys, values = torch.randn(5, 12), torch.randn(7, 12), torch.randn(7, 3)
    score = Cosine(temperature=1.0, learnable=True)
    optimizer = torch.optim.SGD(score.parameters(), lr=50.0)
    target = values[Cosine()(queries, keys).argmax(-1)]
    for _ in range(30):
        optimizer.zero_grad()
        (attend(queries, keys, values, score=score) - target).square().mean().backward()
        optimizer.step()
    assert 0 < score.temperature.item() < 0.2


def test_fixed_temperature_is_exact_and_no_parameter():
    score = Cosine(temperature=0.1).double()
    assert score.temperature.item() == 0.1
    assert list(score.parameters()) == []


@pytest.mark.parametrize("temperature", [0.0, -2.0, float("nan"), float("inf")])
def test_temperature_that_is_not_above_zero_is_refused(temperature):
    with pytest.raises(RegardError, match=f"temperature must be finite and above 0.*{temperature}"):
        Cosine(temperature)


@pytest.mark.parametrize("backend", ["fused", "dense"])
@pytest.mark.parametrize(
    ("dtype", "min_norm"),
    [
        (torch.float64, 1e-8),
        (torch.float32, 1e-8),
        (torch.bfloat16, 1e-8),
        (torch.float16, 1e-3),
    ],
    ids=str,
)
def test_slope_at_a_zero_vector_is_at_most_one_over_the_documented_norm(dtype, min_norm, backend):
    queries, keys = torch.zeros(1, 4, dtype=dtype, requires_grad=True), torch.eye(4, dtype=dtype)
    values = torch.tensor([[4.0], [0], [0], [0]], dtype=dtype)
    # weights are ¼ each, so the slope along the first key is 4 · ¼ · ¾ times that of its cosine
    attend(queries, keys, values, score=Cosine(0.5), backend=backend).sum().backward()
    slope = queries.grad[0, 0].item() / 0.75 * 0.5
    assert slope == pytest.approx(1 / min_norm, rel=4 * torch.finfo(dtype).eps + 1e-6)
