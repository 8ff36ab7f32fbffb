"""Nadaraya-Watson kernel regression: attention over training points, without a network.

The prediction at x is the mean of the training y, weighted by how near their x is: queries are the
new x, keys the training x and values the training y. The bandwidth is fixed, or learned by
leave-one-out prediction of each training point from all the others.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import mse_loss

from regard.attention.functional import attend, weights
from regard.attention.scores import KERNEL_PROFILES, Gaussian, Kernel, uniform
from regard.errors import RegardError, unknown_name
from regard.masks import window

Points = Tensor | NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]

KERNELS = ("average", "gaussian", *KERNEL_PROFILES)
"""The kernels of `NadarayaWatson`, by name."""


class NadarayaWatson:
    """Kernel regression that fits points (x, y) and predicts y at new x.

    Args:
        kernel: "gaussian", "boxcar", "triangular", "epanechnikov", or "average", which weighs
            all points alike and so predicts the mean of y everywhere.
        bandwidth: how far a point's influence reaches; where learning starts, if learnable.
        learnable: whether `fit` learns the bandwidth.

    Raises:
        RegardError: if there is no such kernel, or it has no bandwidth to learn.

    Example:
        >>> model = NadarayaWatson("boxcar", bandwidth=1.0).fit([0.0, 1.0, 5.0], [2.0, 4.0, 9.0])
        >>> model
        NadarayaWatson('boxcar', bandwidth=1)
        >>> model.predict([0.5, 5.0])
        tensor([3., 9.])
    """

    def __init__(
        self, kernel: str = "gaussian", bandwidth: float = 1.0, learnable: bool = False
    ) -> None:
        if kernel not in KERNELS:
            raise unknown_name("kernel", kernel, KERNELS)
        if learnable and kernel == "average":
            raise RegardError("the average of all points has no bandwidth to learn")
        self.kernel = kernel
        self.learnable = learnable
        self.score: Gaussian | Kernel
        if kernel == "gaussian":
            self.score = Gaussian(bandwidth, learnable)
        else:
            self.score = Kernel(KERNEL_PROFILES.get(kernel, uniform), bandwidth, learnable)
        self._points: tuple[Tensor, Tensor] | None = None
        self._is_scalar = False  # y had one axis, so predictions have one

    def __repr__(self) -> str:
        learnable = ", learnable=True" if self.learnable else ""
        return f"{type(self).__name__}({self.kernel!r}, bandwidth={self.bandwidth:.4g}{learnable})"

    @property
    def bandwidth(self) -> float:
        """How far a point's influence reaches, at present."""
        return self.score.bandwidth.item()

    def fit(self, x: Points, y: Points) -> "NadarayaWatson":
        """Store the points, and learn the bandwidth if it is learnable.

        Args:
            x: (point,) or (point, width).
            y: (point,) or (point, width).

        Returns:
            The model itself.

        Raises:
            RegardError: if there are no points, not equally many, or some are not finite numbers.
        """
        keys = _as_rows("x", x)
        values = _as_rows("y", y).to(keys.dtype)
        if len(keys) != len(values):
            raise RegardError(
                f"x and y must have equally many points, but have {len(keys)} and {len(values)}"
            )
        if not len(keys):
            raise RegardError("x and y must have one point or more, but there is none")
        self._is_scalar = _to_tensor("y", y).ndim == 1
        with torch.inference_mode(False), torch.enable_grad():
            keys, values = keys.clone(), values.clone()  # the caller may change theirs
            self._points = keys, values
            if self.learnable:
                self._learn_bandwidth(keys, values)
        return self

    @torch.no_grad()
    def predict(self, x: Points) -> Tensor:
        """Predict y at each x.

        Args:
            x: (query,) or (query, width).

        Returns:
            (query,) or (query, width), as y was; 0 where a kernel of finite support reaches no
            point.

        Raises:
            RegardError: if `fit` has not been called, or the width differs.
        """
        queries, (keys, values) = self._queries(x), self._fitted_points()
        predicted = attend(queries, keys, values, score=self.score)
        return predicted.squeeze(-1) if self._is_scalar else predicted

    @torch.no_grad()
    def weights(self, x: Points) -> Tensor:
        """Return the weight of each training point in the prediction at each x.

        Args:
            x: (query,) or (query, width).

        Returns:
            (query, key).

        Raises:
            RegardError: if `fit` has not been called, or the width differs.
        """
        return weights(self._queries(x), self._fitted_points()[0], score=self.score)

    def _learn_bandwidth(self, keys: Tensor, values: Tensor) -> None:
        """Minimise the leave-one-out error: the best of a coarse scan, then L-BFGS.

        The scan is needed because the error may have several local minima.
        """
        log = self.score._bandwidth.log
        assert log is not None, "only a learnable bandwidth is learned"
        start = log.detach().clone()

        def error() -> Tensor:
            # each point is masked from itself, or the narrowest bandwidth would always win
            predicted = attend(keys, keys, values, score=self.score, mask=~window(0))
            return mse_loss(predicted, values)

        def error_at(octave: float) -> float:
            with torch.no_grad():
                log.copy_(start + octave * start.new_tensor(2.0).log())
                return error().item()

        # from the start outwards: where nothing can be learned, the start stays
        extent = (_extent(keys) / log.exp()).log2().item()  # -inf if all points are one
        beyond = [extent - half / 2 for half in range(33) if abs(extent - half / 2) > 8]
        octaves = [half / 2 for half in range(-16, 17)]
        best = min(sorted([*octaves, *filter(isfinite, beyond)], key=abs), key=error_at)
        error_at(best)
        optimizer = torch.optim.LBFGS([log], max_iter=50, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = error()
            loss.backward()
            return loss

        optimizer.step(closure)

    def _fitted_points(self) -> tuple[Tensor, Tensor]:
        if self._points is None:
            raise RegardError("the model has no points yet; call fit(x, y) first")
        return self._points

    def _queries(self, x: Points) -> Tensor:
        keys, _ = self._fitted_points()
        queries = _as_rows("x", x).to(keys.dtype)
        if queries.shape[-1] != keys.shape[-1]:
            raise RegardError(
                f"x must have a width of {keys.shape[-1]}, as in fit, but it is {queries.shape[-1]}"
            )
        return queries


def _extent(rows: Tensor) -> Tensor:
    """Return an upper bound of the points' distances: the diagonal of their bounding box."""
    if not rows.numel():
        return rows.new_zeros(())
    ends = rows.aminmax(dim=0)
    diagonal: Tensor = torch.linalg.vector_norm(ends.max - ends.min)
    return diagonal


def _to_tensor(name: str, points: Points) -> Tensor:
    """Return a tensor as it is; sequences follow the default device."""
    if isinstance(points, Tensor):
        return points
    try:
        return torch.as_tensor(points)
    except (TypeError, ValueError, RuntimeError) as error:
        raise RegardError(
            f"{name} must be numbers, (point,) or rows of equal lengths (point, width): {error}"
        ) from error


def _as_rows(name: str, points: Points) -> Tensor:
    """Return (point,) or (point, width) as (point, width)."""
    rows = _to_tensor(name, points)
    rows = rows if rows.is_floating_point() else rows.to(torch.get_default_dtype())
    if rows.ndim not in (1, 2):
        raise RegardError(
            f"{name} must be (point,) or (point, width), but its shape is {tuple(rows.shape)}"
        )
    if not rows.isfinite().all():
        raise RegardError(f"{name} must be finite, but it has NaN or infinite values")
    return rows[:, None] if rows.ndim == 1 else rows
