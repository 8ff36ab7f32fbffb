import pytest
import torch
from torch.testing import assert_close

from regard._support import linear
from regard._support.linear import Linear, fast_products, is_onednn_faster, multiply

has_operator = torch.backends.mkldnn.is_available() and hasattr(
    torch.ops.mkldnn, "_linear_pointwise"
)
needs_onednn = pytest.mark.skipif(not has_operator, reason="torch without oneDNN")


@pytest.fixture
def onednn_chosen(monkeypatch):
    monkeypatch.setattr(linear, "is_onednn_faster", lambda: True)


def layer_and_rows(*batch, width=12, out=20, bias=True, dtype=torch.float32):
    torch.manual_seed(0)
    layer = Linear(width, out, bias).to(dtype)
    return layer, torch.randn(*batch, width, dtype=dtype, requires_grad=True)


def output_and_gradients(layer, rows, forward):
    output = forward(rows)
    weights = torch.linspace(-1, 1, output.numel()).view_as(output)
    return [output, *torch.autograd.grad((output * weights).sum(), (rows, *layer.parameters()))]


@needs_onednn
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [(64,), (65,), (9, 13), (3, 5, 7), (1000,)])
def test_layer_on_onednn_agrees_with_torch(onednn_chosen, batch, bias):
    layer, rows = layer_and_rows(*batch, bias=bias)
    expected = output_and_gradients(layer, rows, super(Linear, layer).forward)
    with fast_products():
        result = output_and_gradients(layer, rows, layer)
    assert type(result[0].grad_fn).__name__ == "_OneDNNLinearBackward"
    assert_close(result, expected, rtol=1e-5, atol=1e-4)


@needs_onednn
def test_layer_on_onednn_accepts_strided_rows_and_gradients(onednn_chosen):
    layer, rows = layer_and_rows(70, 3)
    strided = rows.transpose(0, 1)
    expected = torch.autograd.grad(super(Linear, layer).forward(strided).sum(), layer.weight)
    with fast_products():
        result = torch.autograd.grad(layer(strided).sum(), layer.weight)
    assert_close(result, expected, rtol=1e-5, atol=1e-4)


@needs_onednn
@pytest.mark.parametrize("frozen", ["rows", "weight", "bias"])
def test_layer_on_onednn_skips_gradients_that_are_not_needed(onednn_chosen, frozen):
    layer, rows = layer_and_rows(70)
    tensors = {"rows": rows, "weight": layer.weight, "bias": layer.bias}
    tensors[frozen].requires_grad_(False)
    with fast_products():
        layer(rows).sum().backward()
    assert {name for name, tensor in tensors.items() if tensor.grad is None} == {frozen}


@needs_onednn
def test_row_counts_share_few_kernels(onednn_chosen, monkeypatch):
    shapes = set()
    original = linear._multiply_transposed
    monkeypatch.setattr(
        linear,
        "_multiply_transposed",
        lambda left, right, bias=None: (shapes.add(left.shape), original(left, right, bias))[1],
    )
    layer, _ = layer_and_rows()
    with fast_products(), torch.no_grad():
        for count in range(512, 1025):
            assert layer(torch.zeros(count, 12)).shape == (count, 20)
    assert len(shapes) <= 10


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes_are_left_to_torch(onednn_chosen, dtype):
    layer, rows = layer_and_rows(70, dtype=dtype)
    with fast_products():
        assert torch.equal(layer(rows), super(Linear, layer).forward(rows))


@pytest.mark.parametrize("batch", [(), (3,), (0,), (63,)])
def test_few_rows_are_left_to_torch(onednn_chosen, batch):
    layer, rows = layer_and_rows(*batch)
    with fast_products():
        assert torch.equal(layer(rows), super(Linear, layer).forward(rows))


def test_layer_is_torchs_own_outside_of_the_context(onednn_chosen):
    layer, rows = layer_and_rows(70)
    with fast_products():
        pass
    assert torch.equal(layer(rows), super(Linear, layer).forward(rows))
    assert "OneDNN" not in type(layer(rows).grad_fn).__name__


@needs_onednn
def test_products_agree_with_torch(onednn_chosen):
    left, right = torch.randn(70, 12), torch.randn(12, 20)
    with fast_products():
        assert_close(multiply(left, right), left @ right, rtol=1e-5, atol=1e-4)
        assert_close(multiply(right.t(), left.t()), (left @ right).t(), rtol=1e-5, atol=1e-4)
    buffer = torch.empty(70, 20)
    assert multiply(left, right, out=buffer) is buffer


@pytest.mark.parametrize(
    "vendor, is_faster", [("vendor_id : AuthenticAMD", True), ("vendor_id : GenuineIntel", False)]
)
def test_onednn_is_chosen_by_the_vendor_of_the_cpu(monkeypatch, vendor, is_faster):
    monkeypatch.setattr(linear, "_cpu_vendor", lambda: vendor)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    assert is_onednn_faster.__wrapped__() == (is_faster and has_operator)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert not is_onednn_faster.__wrapped__()
