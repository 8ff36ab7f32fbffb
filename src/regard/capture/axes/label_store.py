"""What is known about each live tensor, and about those in one call of a function."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from torch import Tensor

from regard.capture.axes.labels import Axes, new_axes
from regard.capture.functions import FunctionCall, TensorMap


class Labels(NamedTuple):
    """What is known about a tensor."""

    axes: Axes
    is_constant: bool = False  # computed from parameters and buffers alone
    is_parameter: bool = False  # a parameter or buffer, or a view of one
    is_filled: bool = False  # made by the model of a shape and numbers, as zeros and ranges are


class LabelStore:
    """The labels of all live tensors.

    Args:
        constants: the parameters and buffers of the model.

    Attributes:
        has_gathers: whether any elements were picked by indices.
    """

    def __init__(self, constants: Iterable[Tensor] = ()) -> None:
        self._labels = TensorMap[Labels]()
        # buffers that are written to, such as KV caches, are no constants any more
        self._constants = {id(x): x._version for x in constants if not x.is_inference()}
        self.has_gathers = False

    def labels(self, tensor: Tensor) -> Labels:
        """Return the labels of a tensor; an unknown one gets new origins."""
        labels = self._known(tensor)
        if labels is None:
            is_parameter = self._is_in_model(tensor)
            axes = new_axes(tensor) if is_parameter else _axes_of_input(tensor)
            labels = Labels(axes, is_parameter, is_parameter)
            self._labels[tensor] = labels
        return labels

    def is_constant(self, tensor: Tensor) -> bool:
        """Return whether a tensor depends on parameters and buffers alone; label nothing."""
        labels = self._known(tensor)
        return self._is_in_model(tensor) if labels is None else labels.is_constant

    def is_parameter(self, tensor: Tensor) -> bool:
        """Return whether a tensor is a parameter or buffer, or a view of one; label nothing."""
        labels = self._known(tensor)
        return self._is_in_model(tensor) if labels is None else labels.is_parameter

    def axes(self, tensor: Tensor) -> Axes:
        """Return the axes of a tensor."""
        return self.labels(tensor).axes

    def add_filled(self, tensor: Tensor) -> None:
        """Label a constant that the model made of a shape and numbers."""
        self._labels[tensor] = Labels(new_axes(tensor), is_constant=True, is_filled=True)

    def __setitem__(self, tensor: Tensor, labels: Labels) -> None:
        self._labels[tensor] = labels

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor in self._labels

    def _known(self, tensor: Tensor) -> Labels | None:
        labels = self._labels.get(tensor)
        return None if labels is None or len(labels.axes) != tensor.ndim else labels

    def _is_in_model(self, tensor: Tensor) -> bool:
        version = self._constants.get(id(tensor))
        return version is not None and version == _version_of(tensor)


def _axes_of_input(tensor: Tensor) -> Axes:
    """Return new axes of a tensor that no function made."""
    axes = new_axes(tensor)
    is_single = tensor.ndim > 3 and len(tensor) == 1
    for n, axis in enumerate(axes):
        for factor in axis:
            factor.origin.is_input = True
            factor.origin.is_leading, factor.origin.is_inner = n == 0, is_single
            factor.origin.is_images = n == 0 and tensor.ndim > 3
            is_last, is_channel = n == tensor.ndim - 1 > 1, n == 1 and tensor.ndim > 3
            factor.origin.may_be_feature = is_last or is_channel
    candidates = [f.origin for axis in axes for f in axis if f.origin.may_be_feature]
    for origin in candidates:
        origin.others = tuple(x for x in candidates if x is not origin)
    return axes


def _version_of(tensor: Tensor) -> int:
    """Return the number of in-place changes of a tensor."""
    return -1 if tensor.is_inference() else tensor._version


class LabelledCall(NamedTuple):
    """A call of a torch function, and the labels of the tensors in it."""

    call: FunctionCall
    inputs: list[Tensor]  # all tensors among the arguments
    results: list[Tensor]
    weights: Tensor | None  # attention weights among the inputs
    store: LabelStore

    @property
    def first(self) -> Tensor:
        """The first of the inputs."""
        return self.inputs[0]

    def axes(self, tensor: Tensor) -> Axes:
        """Return the axes of a tensor."""
        return self.store.labels(tensor).axes


AxesOfResults = Sequence[Axes | None]
"""The axes of each result, None where they are unknown."""

Rule = Callable[[LabelledCall], AxesOfResults | None]
"""Returns the axes of the results; None if the rule does not apply to this call."""
