"""Values of live tensors, by identity."""

import gc

import pytest
import torch

from regard.capture.functions import TensorMap


def test_equal_tensors_have_values_of_their_own():
    first, second = torch.zeros(3), torch.zeros(3)
    values = TensorMap()
    values[first] = "first"
    assert values[first] == values.get(first) == "first"
    assert first in values and second not in values and values.get(second) is None
    with pytest.raises(KeyError, match=str(id(second))):
        values[second]


def test_value_is_dropped_with_its_tensor():
    values = TensorMap()
    for _ in range(100):  # new tensors are often at the address of a former one
        tensor = torch.zeros(3)
        assert tensor not in values
        values[tensor] = "seen"
        del tensor
    assert len(values) == 0


def test_later_value_of_a_tensor_replaces_the_earlier_one():
    tensor, values = torch.zeros(3), TensorMap()
    values[tensor] = 1
    values[tensor] = 2
    gc.collect()
    assert values[tensor] == 2 and len(values) == 1


def test_tensor_that_only_autograd_holds_keeps_its_value():
    values = TensorMap()
    rows = torch.ones(3, requires_grad=True) * 2
    values[rows] = "rows"
    square = rows * rows
    del rows
    assert values[square.grad_fn._saved_self] == "rows"


def test_map_that_is_dropped_leaves_its_tensors_alone():
    tensor, values = torch.zeros(3), TensorMap()
    values[tensor] = "seen"
    del values
    gc.collect()
    assert tensor.sum() == 0
