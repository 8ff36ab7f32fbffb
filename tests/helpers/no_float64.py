"""A simulated GPU without float64, as Apple's are: its tensors are computed on the CPU."""

from copy import deepcopy

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("mps", 0)


class SimulatedTensor(torch.Tensor):
    """A tensor that says to be on the simulated device."""

    @property
    def device(self):
        """The simulated device."""
        return DEVICE


class SimulatedDevice(TorchFunctionMode):
    """Context in which tensors can be created on the simulated device and moved to and from it."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Run a function on the CPU; raise if its result would be float64 on the device."""
        leaves = tree_leaves((args, kwargs))
        devices = [device for x in leaves if (device := _parse_device(x)) is not None]
        inputs = {type(x) for x in leaves if isinstance(x, torch.Tensor) and x.ndim}
        if function is torch.Tensor.cpu:
            devices = [torch.device("cpu")]
        elif not devices and len(inputs) > 1:
            raise RuntimeError("tensors are on different devices")
        is_simulated = DEVICE in devices or (not devices and SimulatedTensor in inputs)
        arguments = tree_map(_to_cpu, (args, kwargs or {}))
        result = function(*arguments[0], **arguments[1])
        is_plain = not is_simulated or isinstance(result, torch.Size)
        return result if is_plain else tree_map(_to_device, result)


def _parse_device(value):
    """Return a device or the device that a string names; None for anything else."""
    if isinstance(value, torch.device):
        return value
    is_name = isinstance(value, str) and value.partition(":")[0] in ("cpu", "mps", "meta")
    return torch.device(value) if is_name else None


def _to_cpu(value):
    if isinstance(value, SimulatedTensor):
        return value.as_subclass(torch.Tensor)
    is_simulated = isinstance(value, torch.device) and value == DEVICE
    return torch.device("cpu") if is_simulated else value


def _to_device(value):
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype == torch.float64:
        raise TypeError("the simulated device does not support float64")
    return value.as_subclass(SimulatedTensor)


def copy_of(model):
    """Return a copy of a model on the device: `model.to` would keep the type of its parameters."""
    copied = deepcopy(model)
    for module in copied.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = _to_device(parameter.detach())
    return copied
