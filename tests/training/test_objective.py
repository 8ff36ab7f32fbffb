import pytest
import torch

from regard.config import ModelConfig
from regard.data import BOS, EOS, PAD, Batch
from regard.models import build
from regard.training.objective import Objective, alignment_loss

VOCAB_SIZES = (17, 23)


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
    config = ModelConfig(kind=request.param, width=12, layers=2, heads=3, ffn_width=20, score=score)
    return build(config, VOCAB_SIZES)


def test_loss_counts_every_token_and_no_padding(model, batch):
    model.eval()
    objective = Objective(model).eval()
    states = model.decode(batch.inputs, model.encode(batch.source, batch.lengths))
    expected = torch.nn.functional.cross_entropy(
        (states @ model.output_weight.T).flatten(0, 1).double(),
        batch.targets.flatten(),
        ignore_index=PAD,
        reduction="sum",
    )
    loss, nll = objective(batch)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(nll.double(), expected, rtol=1e-5, atol=1e-5)


def test_label_smoothing_applies_in_training_only(model, batch):
    objective = Objective(model, label_smoothing=0.3)
    for part in objective.modules():
        if hasattr(part, "dropout"):
            part.dropout = 0.0
    loss, nll = objective.train()(batch)
    assert not torch.isclose(loss, nll)
    loss, nll = objective.eval()(batch)
    torch.testing.assert_close(loss, nll)


def test_every_parameter_gets_a_gradient(model, batch):
    Objective(model, label_smoothing=0.1).train()(batch).loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name


def test_alignment_loss_is_least_where_weights_equal_the_links():
    links = torch.tensor([[[0.0, 0, 0], [1, 0, 0], [0, 1, 1]]])
    aligned = torch.tensor([[[0.2, 0.3, 0.5], [1, 0, 0], [0, 0.5, 0.5]]])
    # a row without links costs nothing; two links share the row: the entropy of a coin is left
    assert alignment_loss(aligned, links) == pytest.approx(torch.tensor(2.0).log().item(), rel=1e-5)
    misaligned = aligned.roll(1, dims=-1)
    assert alignment_loss(misaligned, links).isfinite()
    assert alignment_loss(misaligned, links) > 10 * alignment_loss(aligned, links)


def test_guided_alignment_turns_the_head_towards_the_links(batch):
    """Within a few steps the first head of the last layer attends where the links are."""
    torch.manual_seed(1)
    config = ModelConfig(width=12, layers=1, heads=3, ffn_width=20, dropout=0.0)
    model = build(config, VOCAB_SIZES)
    links = torch.zeros(3, 4, 4)
    for row, (target, source) in enumerate(((3, 0), (1, 1), (2, 0))):
        links[row, target, source] = 1.0
    objective = Objective(model, alignment_weight=5.0, alignment_layer=-1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(40):
        optimizer.zero_grad()
        objective(batch._replace(links=links)).loss.backward()
        optimizer.step()
    _, weights = model.forward_with_weights(batch.source, batch.lengths, batch.inputs)
    assert weights.cross[-1][:, 0][links.bool()].min() > 0.8
