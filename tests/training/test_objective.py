import pytest
import torch

from regard.config import ModelConfig
from regard.data import BOS, EOS, PAD, Batch
from regard.models import build
from regard.training.objective import Objective, guidance

SIZES = (17, 23)


@pytest.fixture
def batch():
    """Three pairs of different lengths, padded."""
    source = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0], [11, 12, 13, 0]])
    target = torch.tensor([[4, 5, 6], [7, 0, 0], [8, 9, 0]])
    inputs = torch.nn.functional.pad(target, (1, 0), value=BOS)
    targets = torch.nn.functional.pad(target, (0, 1), value=PAD)
    for row, length in enumerate((3, 1, 2)):
        targets[row, length] = EOS
    return Batch(source, torch.tensor([4, 2, 3]), inputs, targets)


@pytest.fixture(params=["transformer", "recurrent"])
def model(request):
    score = "additive" if request.param == "recurrent" else "scaled_dot"
    settings = ModelConfig(
        kind=request.param, width=12, layers=2, heads=3, ffn_width=20, score=score
    )
    return build(settings, SIZES)


def test_the_loss_is_that_of_every_real_token_and_of_no_padding(model, batch):
    model.eval()
    objective = Objective(model).eval()
    states = model.decode(batch.inputs, model.encode(batch.source, batch.lengths))
    wanted = torch.nn.functional.cross_entropy(
        model.logits(states).flatten(0, 1).double(),
        batch.targets.flatten(),
        ignore_index=PAD,
        reduction="sum",
    )
    learned, plain = objective(batch)
    torch.testing.assert_close(learned.double(), wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(plain.double(), wanted, rtol=1e-5, atol=1e-5)


def test_labels_are_smoothed_in_training_only(model, batch):
    objective = Objective(model, smoothing=0.3)
    for part in objective.modules():
        if hasattr(part, "dropout"):
            part.dropout = 0.0
    learned, plain = objective.train()(batch)
    assert not torch.isclose(learned, plain)
    learned, plain = objective.eval()(batch)
    torch.testing.assert_close(learned, plain)


def test_every_weight_of_the_model_learns(model, batch):
    Objective(model, smoothing=0.1).train()(batch).learned.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all(), name


def test_guidance_is_least_where_the_head_looks_where_the_links_are():
    links = torch.tensor([[[0.0, 0, 0], [1, 0, 0], [0, 1, 1]]])
    right = torch.tensor([[[0.2, 0.3, 0.5], [1, 0, 0], [0, 0.5, 0.5]]])
    # a row without links costs nothing; two links share the row: the entropy of a coin is left
    assert guidance(right, links) == pytest.approx(torch.tensor(2.0).log().item(), rel=1e-5)
    assert guidance(right.roll(1, dims=-1), links).isfinite()
    assert guidance(right.roll(1, dims=-1), links) > 10 * guidance(right, links)


def test_guidance_turns_the_head_towards_the_links(batch):
    """In a few steps the first head of the last layer looks where it is told to."""
    torch.manual_seed(1)
    model = build(ModelConfig(width=12, layers=1, heads=3, ffn_width=20, dropout=0.0), SIZES)
    links = torch.zeros(3, 4, 4)
    for row, (target, source) in enumerate(((3, 0), (1, 1), (2, 0))):
        links[row, target, source] = 1.0
    guided = batch._replace(links=links)
    objective = Objective(model, guide=5.0, guide_layer=-1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(40):
        optimizer.zero_grad()
        objective(guided).learned.backward()
        optimizer.step()
    looks = model.forward_with_weights(batch.source, batch.lengths, batch.inputs)[1].cross[-1][:, 0]
    assert looks[links.bool()].min() > 0.8
