import numpy as np
import pytest
import torch

from regard import RegardError
from regard.trace import dequantize, quantize, to_array


@pytest.mark.parametrize("bits", [8, 16])
def test_quantized_values_are_restored_to_half_a_step(bits):
    values = np.random.default_rng(0).random((2, 3, 5)).astype(np.float32)
    restored = dequantize(quantize(values, bits), "values")
    assert restored.shape == values.shape
    assert np.abs(restored - values).max() <= 0.501 / (2**bits - 1)


def test_zero_and_the_largest_value_are_exact():
    restored = dequantize(quantize(np.array([0.0, 0.25, 7.5], dtype=np.float32)), "values")
    assert restored[0] == 0 and restored[2] == 7.5


def test_array_of_zeros_is_restored():
    restored = dequantize(quantize(np.zeros((2, 3), dtype=np.float32)), "values")
    assert restored.dtype == np.float32 and not restored.any()


@pytest.mark.parametrize("largest, bits", [(255, 8), (256, 16), (65535, 16), (65536, 32)])
def test_integers_are_exact_in_the_fewest_bits(largest, bits):
    record = quantize(np.array([[0, largest]]))
    assert record["bits"] == bits and record["scale"] == 1
    assert dequantize(record, "top_keys", as_integers=True).tolist() == [[0, largest]]


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_negative_and_non_finite_values_are_refused(wrong):
    with pytest.raises(RegardError, match="must be finite and 0 or greater"):
        quantize(np.array([0.5, wrong]))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"data": "AAA="}, r"weights of shape \(2,\) must have 4 bytes, not 2"),
        ({"data": "?"}, "must be an array with shape"),
        ({"bits": 7}, "8, 16 or 32 bits"),
        ({"shape": [-2]}, "and a shape"),
        ({"scale": "x"}, "must be an array with shape"),
    ],
)
def test_malformed_record_is_refused(change, message):
    with pytest.raises(RegardError, match=message):
        dequantize(quantize(np.array([0.5, 1.0])) | change, "weights")


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -1.0, 0, 1e38])
def test_scale_that_does_not_fit_float32_is_refused(scale):
    with pytest.raises(RegardError, match="weights must have a scale above 0 that fits float32"):
        dequantize(quantize(np.array([0.5, 1.0])) | {"scale": scale}, "weights")


def test_bfloat16_tensor_that_requires_grad_becomes_an_array():
    tensor = torch.tensor([0.5, 0.25], dtype=torch.bfloat16, requires_grad=True)
    assert to_array(tensor).tolist() == [0.5, 0.25]


def test_other_numbers_of_bits_are_refused():
    with pytest.raises(RegardError, match="bits must be 8, 16 or 32, but it is 7"):
        quantize(np.array([0.5]), bits=7)
