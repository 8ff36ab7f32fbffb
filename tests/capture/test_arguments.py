import torch

from regard.capture.arguments import by_position


def test_tensors_given_by_name_come_in_the_order_of_torch():
    weights, values = torch.ones(1), torch.zeros(1)
    args, kwargs = by_position((), {"mat2": values, "input": weights, "out": None})
    assert args[0] is weights and args[1] is values and kwargs == {"out": None}


def test_what_is_no_tensor_keeps_its_name():
    rows = torch.ones(2)
    assert by_position((rows,), {"dim": 0, "other": 0.5}) == ((rows,), {"dim": 0, "other": 0.5})
