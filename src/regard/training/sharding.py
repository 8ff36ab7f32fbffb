"""Sharded data parallelism (FSDP2): each process holds a share of the model and its optimizer.

Parameters, gradients and optimizer state are split over the processes by rows (`fully_shard`, as in
ZeRO). A part of the model is gathered just before it computes, and freed after it; gradients are
reduced to the process that has the share. The main process also keeps a complete copy of the model,
to validate, translate and write the same checkpoints as without sharding.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from warnings import filterwarnings

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from regard.models import FeedForward, TransformerLayer
from regard.training.distributed import Distributed
from regard.training.objective import Objective

OptimizerFactory = Callable[[nn.Module], torch.optim.Optimizer]


class Sharding:
    """A sharded objective and optimizer, and the main process's complete ones.

    Every process must call every method, since they exchange tensors.

    Args:
        objective: the complete objective. The main process keeps it as `full_objective`; in the
            others it is sharded in place.
        optimizer: the complete optimizer, with the state to continue from.
        build_optimizer: returns an optimizer of a model.
        group: the processes.
    """

    def __init__(
        self,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        build_optimizer: OptimizerFactory,
        group: Distributed,
    ) -> None:
        self.group = group
        state = [dict(optimizer.state.get(own, {})) for own in objective.model.parameters()]
        self.full_objective = objective if group.is_main else None
        self.full_optimizer = optimizer if group.is_main else None
        self.objective = deepcopy(objective) if group.is_main else objective
        optimizer.state.clear()
        self._shard()
        self.optimizer = build_optimizer(self.objective.model)
        for parameter, values in zip(self.objective.model.parameters(), state, strict=True):
            for key, value in values.items():
                self.optimizer.state[parameter][key] = shard_like(value, parameter)

    def _shard(self) -> None:
        mesh = init_device_mesh(self.group.device.type, (self.group.world_size,))
        # its output may be a view, which nothing changes in place: residual sums are new tensors
        filterwarnings("ignore", r"FSDP2-wrapped module \(FSDPFeedForward\) returned a view")
        # after a forward pass in evaluation, too: parameters are read in between
        for part in _parts(self.objective.model):
            fully_shard(part, mesh=mesh, reshard_after_forward=True)
        fully_shard(self.objective, mesh=mesh, reshard_after_forward=True)

    def gather_parameters(self) -> None:
        """Copy the parameters into the main process's complete model."""
        full = None
        if self.full_objective is not None:
            full = dict(self.full_objective.model.named_parameters())
        with torch.no_grad():
            for name, parameter in self.objective.model.named_parameters():
                value = full_tensor(parameter)
                if full is not None:
                    full[name].copy_(value)

    def gather_optimizer(self) -> None:
        """Copy the optimizer's state into the main process's complete optimizer."""
        full = None
        if self.full_objective is not None:
            full = dict(self.full_objective.model.named_parameters())
        for name, parameter in self.objective.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                complete = full_tensor(value)
                if full is not None and self.full_optimizer is not None:
                    self.full_optimizer.state[full[name]][key] = complete

    def release_optimizer(self) -> None:
        """Free the main process's complete optimizer state."""
        if self.full_optimizer is not None:
            self.full_optimizer.state.clear()


def full_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor with the shares of all processes; one that is not sharded as it is."""
    complete: Tensor = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return complete


def local_tensor(tensor: Tensor) -> Tensor:
    """Return this process's share of a tensor; one that is not sharded as it is."""
    share: Tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return share


def shard_like(value: Tensor, parameter: Tensor) -> Tensor:
    """Return this process's share of a complete tensor, if it has the shape of the parameter."""
    if not isinstance(parameter, DTensor) or value.shape != parameter.shape:
        return value
    mesh, placements = parameter.device_mesh, parameter.placements
    # every process has the complete value: nothing needs to be sent
    return distribute_tensor(value, mesh, placements, src_data_rank=None)


def _parts(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the parts of a model that are gathered one at a time.

    A decoder layer is none: its cross-attention projects the source before the layer runs.
    """
    inside_a_part: set[nn.Module] = set()
    for module in model.modules():
        is_encoder_layer = isinstance(module, TransformerLayer) and module.cross is None
        if (is_encoder_layer or isinstance(module, FeedForward)) and module not in inside_a_part:
            inside_a_part.update(module.modules())
            yield module
