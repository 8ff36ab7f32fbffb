import numpy as np
import pytest
import torch

from regard.trace.quantize import array, pack, unpack


@pytest.mark.parametrize("bits", [8, 16])
def test_numbers_come_back_to_half_a_step(bits):
    numbers = np.random.default_rng(0).random((2, 3, 5)).astype(np.float32)
    back = unpack(pack(numbers, bits), "numbers")
    assert back.shape == numbers.shape
    assert np.abs(back - numbers).max() <= 0.501 / (2**bits - 1)


def test_zero_stays_zero_and_the_largest_itself():
    back = unpack(pack(np.array([0.0, 0.25, 7.5], dtype=np.float32)), "numbers")
    assert back[0] == 0 and back[2] == 7.5


def test_zeros_alone_stay_numbers():
    back = unpack(pack(np.zeros((2, 3), dtype=np.float32)), "numbers")
    assert back.dtype == np.float32 and not back.any()


@pytest.mark.parametrize("most, bits", [(255, 8), (256, 16), (65535, 16), (65536, 32)])
def test_whole_numbers_stay_exact_in_as_few_bits_as_they_need(most, bits):
    packed = pack(np.array([[0, most]]))
    assert packed["bits"] == bits and packed["scale"] == 1
    assert unpack(packed, "top", whole=True).tolist() == [[0, most]]


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_what_is_no_weight_is_refused(wrong):
    with pytest.raises(ValueError, match="must be finite and 0 or more"):
        pack(np.array([0.5, wrong]))


@pytest.mark.parametrize(
    "change, words",
    [
        ({"data": "AAA="}, "weights of shape \\(2,\\) must hold 4 bytes, but it holds 2"),
        ({"data": "?"}, "must be numbers with shape"),
        ({"bits": 7}, "8, 16 or 32 bits"),
        ({"shape": [-2]}, "and a shape"),
        ({"scale": "x"}, "must be numbers with shape"),
    ],
)
def test_broken_numbers_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        unpack(pack(np.array([0.5, 1.0])) | change, "weights")


def test_tensors_that_need_gradients_and_half_precision_become_arrays():
    given = torch.tensor([0.5, 0.25], dtype=torch.bfloat16, requires_grad=True)
    assert array(given).tolist() == [0.5, 0.25]


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -1.0, 0, 1e38])
def test_a_scale_that_makes_no_weights_is_refused(scale):
    with pytest.raises(ValueError, match="weights must have a scale above 0 that float32"):
        unpack(pack(np.array([0.5, 1.0])) | {"scale": scale}, "weights")
