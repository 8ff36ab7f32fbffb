import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from regard.training import fused_cross_entropy
from regard.training.fused_cross_entropy import cross_entropy

ROWS, WIDTH, TOKENS = 11, 6, 17
SMOOTHINGS = (0.0, 0.1, 0.9)


def example(rows=ROWS, width=WIDTH, tokens=TOKENS, dtype=torch.float64, scale=1.0):
    states = (torch.randn(rows, width, dtype=dtype) * scale).requires_grad_()
    output = torch.randn(tokens, width, dtype=dtype, requires_grad=True)
    return states, output, torch.randint(tokens, (rows,))


def reference(states, output, targets, smoothing):
    return functional.cross_entropy(
        states @ output.t(), targets, reduction="sum", label_smoothing=smoothing
    )


class Watched(TorchDispatchMode):
    """Remembers the largest tensor that was made, and which operations made them."""

    def __init__(self):
        super().__init__()
        self.largest, self.operations = 0, []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        made = operation(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.numel())
        self.operations.append(operation.overloadpacket.__name__)
        return made


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(fused_cross_entropy, "ROWS", 4)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 8, 11])
def test_it_is_the_loss_that_torch_computes(small_blocks, smoothing, rows):
    states, output, targets = example(rows)
    smoothed, plain = cross_entropy(states, output, targets, smoothing)
    assert torch.allclose(smoothed, reference(states, output, targets, smoothing))
    assert torch.allclose(plain, reference(states, output, targets, 0.0))


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 8, 11])
def test_its_gradients_are_those_that_torch_computes(small_blocks, smoothing, rows):
    states, output, targets = example(rows)
    found = torch.autograd.grad(
        3 * cross_entropy(states, output, targets, smoothing)[0], (states, output)
    )
    wanted = torch.autograd.grad(
        3 * reference(states, output, targets, smoothing), (states, output)
    )
    for mine, theirs in zip(found, wanted, strict=True):
        assert torch.allclose(mine, theirs)


def test_gradients_agree_with_differences(small_blocks):
    states, output, targets = example(rows=5, width=3, tokens=7)
    assert torch.autograd.gradcheck(
        lambda states, output: cross_entropy(states, output, targets, 0.2)[0], (states, output)
    )


@given(rows=st.integers(0, 12), block=st.integers(1, 13), smoothing=st.floats(0, 1))
def test_the_size_of_a_block_changes_nothing(rows, block, smoothing):
    states, output, targets = example(rows, width=3, tokens=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused_cross_entropy, "ROWS", block)
        smoothed, plain = cross_entropy(states, output, targets, smoothing)
    gradients = torch.autograd.grad(smoothed, (states, output))
    wanted = reference(states, output, targets, smoothing)
    assert torch.allclose(smoothed, wanted)
    assert torch.allclose(plain, reference(states, output, targets, 0.0))
    for mine, theirs in zip(gradients, torch.autograd.grad(wanted, (states, output)), strict=True):
        assert torch.allclose(mine, theirs)


def test_more_rows_than_a_block_agree_in_float32():
    states, output, targets = example(2 * fused_cross_entropy.ROWS + 9, 16, 50, torch.float32)
    smoothed, _ = cross_entropy(states, output, targets, 0.1)
    wanted = reference(states.double(), output.double(), targets, 0.1)
    assert smoothed.item() == pytest.approx(wanted.item(), rel=1e-5)
    found = torch.autograd.grad(smoothed, (states, output))
    for mine, theirs in zip(found, torch.autograd.grad(wanted, (states, output)), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-4)


@pytest.mark.parametrize("scale", [1e3, 1e8, 1e30])
def test_huge_scores_stay_finite_and_agree(small_blocks, scale):
    states, output, targets = example(scale=scale)
    smoothed, plain = cross_entropy(states, output, targets, 0.1)
    assert smoothed.isfinite()
    assert plain.isfinite()
    wanted = reference(states, output, targets, 0.1)
    assert torch.allclose(smoothed, wanted)
    found = torch.autograd.grad(smoothed, (states, output))
    for mine, theirs in zip(found, torch.autograd.grad(wanted, (states, output)), strict=True):
        assert torch.allclose(mine, theirs)


def test_no_rows_lose_nothing_and_teach_nothing():
    states, output, targets = example(rows=0)
    smoothed, plain = cross_entropy(states, output, targets, 0.1)
    smoothed.backward()
    assert (smoothed.item(), plain.item()) == (0.0, 0.0)
    assert states.grad.shape == (0, WIDTH)
    assert output.grad.count_nonzero() == 0


def test_a_vocabulary_of_one_is_never_wrong():
    states, output, targets = example(tokens=1)
    smoothed, plain = cross_entropy(states, output, targets, 0.3)
    smoothed.backward()
    assert smoothed.item() == pytest.approx(0, abs=1e-12)
    assert plain.item() == pytest.approx(0, abs=1e-12)
    assert torch.allclose(states.grad, torch.zeros_like(states))


def test_the_plain_loss_has_no_gradient():
    _, plain = cross_entropy(*example(), 0.1)
    assert not plain.requires_grad


@pytest.mark.parametrize("frozen", [0, 1])
def test_one_side_may_be_without_a_gradient(frozen):
    inputs = list(example())
    inputs[frozen] = inputs[frozen].detach()
    cross_entropy(*inputs, 0.1)[0].backward()
    (wanted,) = torch.autograd.grad(reference(*inputs, 0.1), inputs[1 - frozen])
    assert inputs[frozen].grad is None
    assert torch.allclose(inputs[1 - frozen].grad, wanted)


def test_the_scores_of_all_rows_are_never_in_memory_at_once(small_blocks):
    rows, width, tokens = 30, 5, 70
    states, output, targets = example(rows, width, tokens)
    with Watched() as watched:
        cross_entropy(states, output, targets, 0.1)[0].backward()
    assert watched.largest <= max(fused_cross_entropy.ROWS * tokens, tokens * width, rows * width)
    with Watched() as watched:
        reference(states, output, targets, 0.1)
    assert watched.largest == rows * tokens, "the plain way has them all"


@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
def test_no_gradient_is_computed_where_none_is_wanted(without):
    states, output, targets = example()
    wanted = cross_entropy(states, output, targets, 0.1)
    with without(), Watched() as watched:
        found = cross_entropy(states, output, targets, 0.1)
    assert found == wanted
    assert watched.operations.count("mm") == 1
    assert not {"addmm_", "index_add_"} & set(watched.operations)


def test_the_inputs_stay_as_they_were():
    states, output, targets = example()
    before = states.clone(), output.clone(), targets.clone()
    cross_entropy(states, output, targets, 0.1)[0].backward()
    assert all(a.equal(b) for a, b in zip((states, output, targets), before, strict=True))
