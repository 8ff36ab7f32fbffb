import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from regard.training.fused_cross_entropy import CHUNK_ROWS, linear_cross_entropy

ROWS, WIDTH, TOKENS = 11, 6, 17
CHUNK = 4  # fewer than ROWS
SMOOTHINGS = (0.0, 0.1, 0.9)


def example(rows=ROWS, width=WIDTH, tokens=TOKENS, dtype=torch.float64, scale=1.0):
    states = (torch.randn(rows, width, dtype=dtype) * scale).requires_grad_()
    output_weight = torch.randn(tokens, width, dtype=dtype, requires_grad=True)
    return states, output_weight, torch.randint(tokens, (rows,))


def reference(states, output_weight, targets, label_smoothing):
    return functional.cross_entropy(
        states @ output_weight.t(), targets, reduction="sum", label_smoothing=label_smoothing
    )


def assert_gradients_close(loss, expected_loss, inputs, atol=1e-8):
    gradients = torch.autograd.grad(loss, inputs)
    for gradient, expected in zip(
        gradients, torch.autograd.grad(expected_loss, inputs), strict=True
    ):
        assert torch.allclose(gradient, expected, atol=atol)


class OperationRecorder(TorchDispatchMode):
    """Records the operations, and the size of the largest tensor they create."""

    def __init__(self):
        super().__init__()
        self.largest, self.operations = 0, []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.numel())
        self.operations.append(operation.overloadpacket.__name__)
        return result


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 8, 11])
def test_loss_and_gradients_agree_with_torch(smoothing, rows):
    states, output_weight, targets = example(rows)
    smoothed, nll = linear_cross_entropy(states, output_weight, targets, smoothing, CHUNK)
    expected = reference(states, output_weight, targets, smoothing)
    assert torch.allclose(smoothed, expected)
    assert torch.allclose(nll, reference(states, output_weight, targets, 0.0))
    assert_gradients_close(3 * smoothed, 3 * expected, (states, output_weight))


def test_gradients_agree_with_finite_differences():
    states, output_weight, targets = example(rows=5, width=3, tokens=7)
    assert torch.autograd.gradcheck(
        lambda *inputs: linear_cross_entropy(*inputs, targets, 0.2, CHUNK)[0],
        (states, output_weight),
    )


@given(rows=st.integers(0, 12), chunk_rows=st.integers(1, 13), smoothing=st.floats(0, 1))
def test_chunk_size_does_not_change_the_result(rows, chunk_rows, smoothing):
    states, output_weight, targets = example(rows, width=3, tokens=5)
    smoothed, nll = linear_cross_entropy(states, output_weight, targets, smoothing, chunk_rows)
    expected = reference(states, output_weight, targets, smoothing)
    assert torch.allclose(smoothed, expected)
    assert torch.allclose(nll, reference(states, output_weight, targets, 0.0))
    assert_gradients_close(smoothed, expected, (states, output_weight))


def test_float32_with_several_default_chunks_agrees_with_float64():
    states, output_weight, targets = example(2 * CHUNK_ROWS + 9, 16, 50, torch.float32)
    smoothed, _ = linear_cross_entropy(states, output_weight, targets, 0.1)
    expected = reference(states.double(), output_weight.double(), targets, 0.1)
    assert smoothed.item() == pytest.approx(expected.item(), rel=1e-5)
    assert_gradients_close(smoothed, expected, (states, output_weight), atol=1e-4)


@pytest.mark.parametrize("scale", [1e3, 1e8, 1e30])
def test_huge_logits_stay_finite_and_agree_with_torch(scale):
    states, output_weight, targets = example(scale=scale)
    smoothed, nll = linear_cross_entropy(states, output_weight, targets, 0.1, CHUNK)
    assert smoothed.isfinite() and nll.isfinite()
    expected = reference(states, output_weight, targets, 0.1)
    assert torch.allclose(smoothed, expected)
    assert_gradients_close(smoothed, expected, (states, output_weight))


def test_no_rows_give_zero_loss_and_zero_gradient():
    states, output_weight, targets = example(rows=0)
    smoothed, nll = linear_cross_entropy(states, output_weight, targets, 0.1)
    smoothed.backward()
    assert (smoothed.item(), nll.item()) == (0.0, 0.0)
    assert states.grad.shape == (0, WIDTH)
    assert output_weight.grad.count_nonzero() == 0


def test_vocabulary_of_one_token_has_zero_loss():
    states, output_weight, targets = example(tokens=1)
    smoothed, nll = linear_cross_entropy(states, output_weight, targets, 0.3)
    smoothed.backward()
    assert smoothed.item() == pytest.approx(0, abs=1e-12)
    assert nll.item() == pytest.approx(0, abs=1e-12)
    assert torch.allclose(states.grad, torch.zeros_like(states))


def test_nll_has_no_gradient():
    _, nll = linear_cross_entropy(*example(), 0.1)
    assert not nll.requires_grad


@pytest.mark.parametrize("frozen", [0, 1])
def test_one_input_may_need_no_gradient(frozen):
    inputs = list(example())
    inputs[frozen] = inputs[frozen].detach()
    linear_cross_entropy(*inputs, 0.1)[0].backward()
    (expected,) = torch.autograd.grad(reference(*inputs, 0.1), inputs[1 - frozen])
    assert inputs[frozen].grad is None
    assert torch.allclose(inputs[1 - frozen].grad, expected)


def test_logits_of_all_rows_are_never_in_memory_at_once():
    rows, width, tokens = 30, 5, 70
    states, output_weight, targets = example(rows, width, tokens)
    with OperationRecorder() as recorder:
        linear_cross_entropy(states, output_weight, targets, 0.1, CHUNK)[0].backward()
    assert recorder.largest <= max(CHUNK * tokens, tokens * width, rows * width)
    with OperationRecorder() as recorder:
        reference(states, output_weight, targets, 0.1)
    assert recorder.largest == rows * tokens, "the unfused loss has them all"


@pytest.mark.parametrize("without_gradient", [torch.no_grad, torch.inference_mode])
def test_no_gradient_is_computed_where_none_is_needed(without_gradient):
    states, output_weight, targets = example()
    expected = linear_cross_entropy(states, output_weight, targets, 0.1)
    with without_gradient(), OperationRecorder() as recorder:
        result = linear_cross_entropy(states, output_weight, targets, 0.1)
    assert result == expected
    assert recorder.operations.count("mm") == 1
    assert not {"addmm_", "index_add_"} & set(recorder.operations)


def test_inputs_are_not_modified():
    inputs = example()
    before = [tensor.clone() for tensor in inputs]
    linear_cross_entropy(*inputs, 0.1)[0].backward()
    assert all(tensor.equal(copy) for tensor, copy in zip(inputs, before, strict=True))
