"""Kernel regression is attention: a mean of observed values, weighted by proximity."""

import torch
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from torch import Tensor

import regard
from regard.attention import make_score
from regard.gallery.figure_page import BLUE, GREEN, GREY, ORANGE, PURPLE
from regard.viz import new_figure

POINTS, NOISE, BANDWIDTH = 60, 0.35, 1.0
KERNELS = ("average", "boxcar", "triangular", "epanechnikov", "gaussian")
LINES = ("-", "--", "-.", ":", "-")
COLOURS = (GREY, ORANGE, GREEN, PURPLE, BLUE)


def truth(x: Tensor) -> Tensor:
    """Return the noiseless curve."""
    return (2 * x).sin() + x / 2


def points() -> tuple[Tensor, Tensor]:
    """Sample noisy observations, sorted by x."""
    generator = torch.Generator().manual_seed(0)
    x = (6 * torch.rand(POINTS, generator=generator)).sort().values
    return x, truth(x) + NOISE * torch.randn(POINTS, generator=generator)


def fitted_models() -> dict[str, regard.NadarayaWatson]:
    """Fit the points three times: averaging, with a fixed and with a learned bandwidth."""
    models = {
        "average pooling": regard.NadarayaWatson("average"),
        "Nadaraya-Watson": regard.NadarayaWatson(bandwidth=BANDWIDTH),
        "learned": regard.NadarayaWatson(bandwidth=BANDWIDTH, learnable=True),
    }
    return {name: model.fit(*points()) for name, model in models.items()}


def draw() -> dict[str, Figure]:
    """Draw the fits, their weights, and the kernels."""
    return {"fits": _fits(), "weights": _weights(), "kernels": _kernels()}


def _fits() -> Figure:
    figure, x = new_figure(10.5, 3.3), torch.linspace(0, 6, 200)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (name, model) in zip(panels, fitted_models().items(), strict=True):
        error = (model.predict(x) - truth(x)).square().mean()
        axes.scatter(*points(), s=14, color=GREY, label="observations")
        axes.plot(x, truth(x), color=GREY, linestyle="--", linewidth=1.2, label="truth")
        axes.plot(x, model.predict(x), color=BLUE, label="prediction")
        axes.text(6, 0, f"mean squared\nerror {error:.2f}", ha="right", va="bottom")
        axes.set(title=_title(name, model), xlabel="x")
    panels[0].set_ylabel("y")
    panels[0].legend(loc="upper left")
    return figure


def _weights() -> Figure:
    figure, x = new_figure(10.5, 3.5), torch.linspace(0, 6, 61)
    scale = PowerNorm(0.5, vmin=0, vmax=0.5)  # shows a weight of 0.02 beside one of 0.4
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (name, model) in zip(panels, fitted_models().items(), strict=True):
        weights = model.weights(x).numpy()
        extent = (-0.5, POINTS - 0.5, 6.05, -0.05)
        image = axes.imshow(weights, cmap="cividis", norm=scale, extent=extent, aspect="auto")
        axes.set(title=_title(name, model), xlabel="key: observations, sorted by x")
    panels[0].set_ylabel("query: x")
    ticks = (0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.5)
    figure.colorbar(image, ax=panels, label="weight (square-root scale)", ticks=ticks)
    return figure


def _kernels() -> Figure:
    figure, distance = new_figure(10.5, 3.3), torch.linspace(-2, 2, 401)
    kernels, fits = figure.subplots(1, 2, width_ratios=[2, 3])
    fits.scatter(*points(), s=14, color=GREY)
    x = torch.linspace(0, 6, 400)
    for name, line, colour in zip(KERNELS, LINES, COLOURS, strict=True):
        values = make_score(name)(torch.zeros(1, 1), distance[:, None]).exp()[0]
        kernels.plot(distance, values, line, color=colour, label=name)
        model = regard.NadarayaWatson(name, bandwidth=0.6).fit(*points())
        fits.plot(x, model.predict(x), line, color=colour)
    kernels.set(title="kernel", xlabel="distance / bandwidth", ylim=(0, 1.6))
    kernels.set(xticks=range(-2, 3), yticks=(0, 0.5, 1))
    kernels.legend(ncols=2, loc="upper center", fontsize="small")
    fits.set(title="fits with bandwidth 0.6", xlabel="x", ylabel="y")
    return figure


def _title(name: str, model: regard.NadarayaWatson) -> str:
    return name if model.kernel == "average" else f"{name}, bandwidth {model.bandwidth:.2f}"
