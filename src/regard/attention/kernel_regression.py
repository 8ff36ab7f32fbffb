"""Nadaraya-Watson kernel regression: attention over the points that were seen, without training.

The prediction at x is the mean of the seen y, weighed by how near their x is: queries are the
new x, keys the seen x and values the seen y. The bandwidth is fixed, or learned by predicting
each seen point from all the others.
"""

from collections.abc import Sequence
from math import isfinite

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from regard.attention.functional import BackendName, attend, weights
from regard.attention.scores.gaussian import Gaussian
from regard.attention.scores.kernels import Kernel, boxcar, epanechnikov, triangular, uniform
from regard.errors import unknown_name
from regard.masks.positional import window

Numbers = Tensor | Sequence[float] | Sequence[Sequence[float]]

PROFILES = {"boxcar": boxcar, "triangular": triangular, "epanechnikov": epanechnikov}
KERNELS = ("average", "gaussian", *PROFILES)

FOLD_UP_TO = 256  # bandwidths between points; farther apart, the folded square loses digits


class NadarayaWatson:
    """Kernel regression that fits points (x, y) and predicts y at new x.

    Args:
        kernel: "gaussian", "boxcar", "triangular", "epanechnikov", or "average", which weighs
            all points alike and so predicts the mean of y everywhere.
        bandwidth: how far a point's influence reaches; where learning starts, if learnable.
        learned: whether `fit` learns the bandwidth.
    """

    def __init__(
        self, kernel: str = "gaussian", bandwidth: float = 1.0, learnable: bool = False
    ) -> None:
        if kernel not in KERNELS:
            raise unknown_name("kernel", kernel, KERNELS)
        if learnable and kernel == "average":
            raise ValueError("the average of all points has no bandwidth to learn")
        self.kernel = kernel
        self.learnable = learnable
        self.score: Gaussian | Kernel
        if kernel == "gaussian":
            self.score = Gaussian(bandwidth, learnable)
        else:
            self.score = Kernel(PROFILES.get(kernel, uniform), bandwidth, learnable)
        self._seen: tuple[Tensor, Tensor] | None = None
        self._flat = False  # y had one axis, so predictions have one

    @property
    def bandwidth(self) -> float:
        """How far a point's influence reaches, as it is now."""
        return self.score.bandwidth.item()

    def fit(self, x: Numbers, y: Numbers) -> "NadarayaWatson":
        """Keep the points, (point,) or (point, width) each, and learn the bandwidth if asked to."""
        keys, values = _rows("x", x), _rows("y", y).to(_rows("x", x).dtype)
        if len(keys) != len(values):
            raise ValueError(
                f"x and y must have as many points, but have {len(keys)}, {len(values)}"
            )
        if not len(keys):
            raise ValueError("x and y must have one point or more, but there is none")
        self._flat = torch.as_tensor(y).ndim == 1
        with torch.inference_mode(False), torch.enable_grad():
            keys, values = keys.clone(), values.clone()  # the caller may change theirs
            self._seen = keys, values
            if self.learnable:
                self._learn(keys, values)
        return self

    @torch.no_grad()
    def predict(self, x: Numbers) -> Tensor:
        """Predict y at each x; where a kernel that ends sees no point, that is 0."""
        queries, (keys, values) = self._queries(x), self._points()
        predicted = attend(
            queries, keys, values, score=self.score, backend=self._backend(queries, keys)
        )
        return predicted.squeeze(-1) if self._flat else predicted

    @torch.no_grad()
    def weights(self, x: Numbers) -> Tensor:
        """Tell how much each seen point counts in the prediction at each x: (query, key)."""
        return weights(self._queries(x), self._points()[0], score=self.score)

    def _learn(self, keys: Tensor, values: Tensor) -> None:
        """Start from the best of a coarse scan, because the error may have several valleys."""
        log = self.score._bandwidth.log
        assert log is not None, "only a learned bandwidth is learned"
        start = log.detach().clone()

        def error() -> Tensor:
            # each point is hidden from itself, or the narrowest bandwidth would always win
            others, backend = ~window(0), self._backend(keys, keys)
            guesses = attend(keys, keys, values, score=self.score, mask=others, backend=backend)
            return mse_loss(guesses, values)

        def error_at(octave: float) -> float:
            with torch.no_grad():
                log.copy_(start + octave * torch.tensor(2.0).log())
                return error().item()

        # from the middle outwards: where nothing can be learned, the start stays
        extent = (_extent(keys) / log.exp()).log2().item()  # -inf if all points are one
        across = [extent - half / 2 for half in range(33) if abs(extent - half / 2) > 8]
        octaves = [half / 2 for half in range(-16, 17)]
        best = min(sorted([*octaves, *filter(isfinite, across)], key=abs), key=error_at)
        error_at(best)
        optimizer = torch.optim.LBFGS([log], max_iter=50, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = error()
            loss.backward()
            return loss

        optimizer.step(closure)

    def _backend(self, queries: Tensor, keys: Tensor) -> BackendName | None:
        far = _extent(torch.cat([queries, keys])) > FOLD_UP_TO * self.score.bandwidth
        return "blockwise" if far else None

    def _points(self) -> tuple[Tensor, Tensor]:
        if self._seen is None:
            raise ValueError("there is nothing to predict from before fit(x, y)")
        return self._seen

    def _queries(self, x: Numbers) -> Tensor:
        keys, _ = self._points()
        queries = _rows("x", x).to(keys.dtype)
        if queries.shape[-1] != keys.shape[-1]:
            raise ValueError(
                f"x must have {keys.shape[-1]} numbers a point, as in fit, but it has "
                f"{queries.shape[-1]}"
            )
        return queries


def _extent(rows: Tensor) -> Tensor:
    """Measure how far apart points may be: the diagonal of the box around them."""
    if not rows.numel():
        return rows.new_zeros(())
    ends = rows.aminmax(dim=0)
    diagonal: Tensor = torch.linalg.vector_norm(ends.max - ends.min)
    return diagonal


def _rows(name: str, numbers: Numbers) -> Tensor:
    """Take (point,) or (point, width) as (point, width)."""
    rows = torch.as_tensor(numbers)
    rows = rows if rows.is_floating_point() else rows.to(torch.get_default_dtype())
    if rows.ndim not in (1, 2):
        raise ValueError(
            f"{name} must be (point,) or (point, width), but its shape is {tuple(rows.shape)}"
        )
    if not rows.isfinite().all():
        raise ValueError(f"{name} must hold finite numbers only, but one is NaN or infinite")
    return rows[:, None] if rows.ndim == 1 else rows
