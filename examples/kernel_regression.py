"""Nadaraya-Watson: a curve through noisy points is attention, and its bandwidth can be learned."""

import torch

from regard import NadarayaWatson


def truth(x: torch.Tensor) -> torch.Tensor:
    """Give the curve that the points were drawn from."""
    return 2 * x.sin() + x**0.8


def main() -> None:
    """Fit fifty points with three kernels, and compare each with the truth."""
    generator = torch.Generator().manual_seed(0)
    x = 5 * torch.rand(50, generator=generator)
    y = truth(x) + 0.5 * torch.randn(50, generator=generator)
    new = torch.linspace(0, 5, 101)

    fits = {
        "average of all points": NadarayaWatson("average"),
        "Gaussian, bandwidth 1": NadarayaWatson("gaussian", bandwidth=1.0),
        "Gaussian, bandwidth learned": NadarayaWatson("gaussian", bandwidth=1.0, learnable=True),
    }
    for name, fit in fits.items():
        error = (fit.fit(x, y).predict(new) - truth(new)).square().mean()
        width = "" if fit.kernel == "average" else f" (bandwidth {fit.bandwidth:.2f})"
        print(f"{name:28s} mean squared error {error:.3f}{width}")


if __name__ == "__main__":
    main()
