import pytest
import torch

from helpers import no_float64
from regard._support.torch_modes import no_autocast, to_float64, upcast


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_upcast_of_half_precision_is_float32_and_exact(dtype):
    rounded = torch.randn(5, 7).to(dtype)
    assert upcast(rounded).dtype == torch.float32
    assert upcast(rounded).to(dtype).equal(rounded)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_upcast_of_full_precision_returns_the_same_tensor(dtype):
    tensor = torch.randn(5, 7, dtype=dtype)
    assert upcast(tensor) is tensor


def test_no_autocast_computes_in_the_dtype_of_the_inputs():
    left, right = torch.randn(5, 7), torch.randn(7, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert (left @ right).dtype == torch.bfloat16
        with no_autocast(left):
            assert (left @ right).dtype == torch.float32
        assert (left @ right).dtype == torch.bfloat16


def test_no_autocast_accepts_a_meta_tensor():
    with no_autocast(torch.empty(2, device="meta")):
        assert torch.empty(2, 3, device="meta").sum().shape == ()


def test_float64_of_a_device_without_it_is_on_the_cpu():
    tensor = torch.randn(5, 7)
    with no_float64.SimulatedDevice():
        converted = to_float64(tensor.to(no_float64.DEVICE))
    assert converted.device.type == "cpu"
    assert converted.dtype == torch.float64
    assert converted.equal(tensor.double())
