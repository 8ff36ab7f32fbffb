"""Names of modules in graphs of `torch.export` and `torch.fx`, whose code is one function."""

from linecache import getline
from types import FrameType

from torch import nn
from torch.fx import GraphModule


def names_of_nodes(module: nn.Module) -> dict[str, str]:
    """Return the module that each node of a graph comes from, where the graph has it.

    `torch.export` and `torch.fx.symbolic_trace` note in each node through which modules they came.
    """
    if not isinstance(module, GraphModule):
        return {}
    names: dict[str, str] = {}
    for node in module.graph.nodes:
        stack = node.meta.get("nn_module_stack")
        path = list(stack.values())[-1][0] if stack else ""
        path = path.removeprefix("L['self']").lstrip(".")
        if path:
            names[node.name] = path
    return names


def running_node(frame: FrameType) -> str:
    """Return the name of the node whose line a graph's function is at: what it assigns to."""
    line = getline(frame.f_code.co_filename, frame.f_lineno)
    return line.partition("=")[0].partition(":")[0].strip()
