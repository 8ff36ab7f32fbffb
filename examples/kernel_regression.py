"""Nadaraya-Watson kernel regression: attention fits a curve, and can learn its bandwidth."""

import torch

from regard import NadarayaWatson


def truth(x: torch.Tensor) -> torch.Tensor:
    """Return the curve that the points were drawn from."""
    return 2 * x.sin() + x**0.8


def main() -> None:
    """Fit fifty noisy points with three models, and compare each with the true curve."""
    generator = torch.Generator().manual_seed(0)
    x = 5 * torch.rand(50, generator=generator)
    y = truth(x) + 0.5 * torch.randn(50, generator=generator)
    queries = torch.linspace(0, 5, 101)

    models = {
        "average of all points": NadarayaWatson("average"),
        "Gaussian, bandwidth 1": NadarayaWatson("gaussian", bandwidth=1.0),
        "Gaussian, bandwidth learned": NadarayaWatson("gaussian", bandwidth=1.0, learnable=True),
    }
    for name, model in models.items():
        error = (model.fit(x, y).predict(queries) - truth(queries)).square().mean()
        bandwidth = "" if model.kernel == "average" else f" (bandwidth {model.bandwidth:.2f})"
        print(f"{name:28s} mean squared error {error:.3f}{bandwidth}")


if __name__ == "__main__":
    main()
