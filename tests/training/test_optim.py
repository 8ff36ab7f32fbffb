import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.config import ModelConfig, TrainConfig
from regard.models import build as build_model
from regard.training import optim
from regard.training.distributed import Distributed
from regard.training.optim import orthogonal


def small_model(**model):
    torch.manual_seed(0)
    settings = ModelConfig(width=16, layers=1, heads=2, ffn_width=24, **model)
    return build_model(settings, (30, 40) if model else (40, 40))


def pulled(model, made, steps=4):
    """Take steps with random gradients, the same for every model."""
    chance = torch.Generator().manual_seed(1)
    for _ in range(steps):
        for weight in model.parameters():
            weight.grad = torch.randn(weight.shape, generator=chance)
        made.step()
    return dict(model.named_parameters())


def adam(model, **more):
    return torch.optim.AdamW(
        model.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9, fused=True, **more
    )


def matrices_of(model):
    found = {
        f"{name}.weight" for name, part in model.named_modules() if isinstance(part, nn.Linear)
    }
    return {name for name in found if "last" not in name}


def test_adam_is_torchs_to_the_bit():
    ours, torchs = small_model(), small_model()
    settings = TrainConfig(learning_rate=0.01, weight_decay=0.1)
    moved = pulled(ours, optim.build(ours, settings, Distributed()))
    for name, weight in pulled(torchs, adam(torchs, weight_decay=0.1)).items():
        assert torch.equal(moved[name], weight), name


@pytest.mark.parametrize("model", [{}, {"tie_output": False}, {"kind": "recurrent"}])
def test_muon_leaves_tables_vectors_and_the_last_layer_to_adam(model):
    ours, torchs = small_model(**model), small_model(**model)
    moved = pulled(
        ours, optim.build(ours, TrainConfig(learning_rate=0.01, optimizer="muon"), Distributed())
    )
    expected = pulled(torchs, adam(torchs, weight_decay=0.0))
    differing = {name for name in moved if not torch.equal(moved[name], expected[name])}
    assert differing == matrices_of(ours) != set()


def test_muon_moves_matrices_as_torchs_does():
    """torch's computes in bfloat16, so the two agree to two hundredths."""
    for shape in [(16, 16), (12, 32), (32, 12)]:
        ours = nn.Linear(*shape[::-1], bias=False)
        torchs = nn.Linear(*shape[::-1], bias=False)
        torchs.load_state_dict(ours.state_dict())
        begin = ours.weight.detach().clone()
        settings = TrainConfig(learning_rate=0.01, optimizer="muon", weight_decay=0.3)
        pulled(ours, optim.build(ours, settings, Distributed()))
        theirs = torch.optim.Muon(
            torchs.parameters(), lr=0.01, weight_decay=0.3, adjust_lr_fn="match_rms_adamw"
        )
        pulled(torchs, theirs)
        assert (ours.weight - torchs.weight).norm() < 0.02 * (torchs.weight - begin).norm()


@pytest.mark.parametrize("shape", [(5, 16, 16), (3, 12, 40), (3, 40, 12)])
def test_orthogonal_keeps_directions_and_evens_their_strength(shape):
    torch.manual_seed(2)
    left, strengths, right = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    made = orthogonal(left * strengths[:, None] @ right)
    evened = left.mT @ made @ right.mT
    diagonal = evened.diagonal(dim1=-2, dim2=-1)
    assert_close(evened, torch.diag_embed(diagonal), rtol=0, atol=1e-4)
    strong = strengths > strengths[:, :1] / 20
    assert diagonal[strong].min() > 0.6 and diagonal.max() < 1.3


def test_orthogonal_of_nothing_is_nothing():
    assert torch.equal(orthogonal(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))


def test_a_matrix_without_a_gradient_stays():
    model = nn.ModuleList(nn.Linear(4, 4, bias=False) for _ in range(2))
    made = optim.build(model, TrainConfig(optimizer="muon"), Distributed())
    before = [layer.weight.detach().clone() for layer in model]
    model[1].weight.grad = torch.randn(4, 4)
    made.step()
    assert torch.equal(before[0], model[0].weight)
    assert not torch.equal(before[1], model[1].weight)


def test_a_weight_that_two_layers_share_moves_once():
    one, other = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
    other.weight = one.weight
    alone = nn.Linear(4, 4, bias=False)
    alone.load_state_dict(one.state_dict())
    for model in (nn.ModuleList([one, other]), alone):
        pulled(model, optim.build(model, TrainConfig(optimizer="muon"), Distributed()))
    assert torch.equal(one.weight, alone.weight)


def test_torchs_own_way_to_keep_a_state_works_too():
    calm, stopped = small_model(), small_model()
    settings = TrainConfig(optimizer="muon")
    first, second = (optim.build(model, settings, Distributed()) for model in (calm, stopped))
    pulled(calm, first)
    pulled(stopped, second)
    third = optim.build(stopped, settings, Distributed())
    third.load_state_dict(second.state_dict())
    after = pulled(calm, first)
    for name, weight in pulled(stopped, third).items():
        assert torch.equal(weight, after[name]), name
