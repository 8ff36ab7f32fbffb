"""Parameter counts of a model."""

from torch import nn


def summary(model: nn.Module) -> str:
    """Return a table of the parameters of each submodule, shared parameters counted once.

    Args:
        model: any module.

    Returns:
        One line per submodule and one for the total.

    Example:
        >>> print(summary(nn.Sequential(nn.Linear(100, 100), nn.Linear(1, 1))))
        0      10,100
        1           2
        total  10,102
    """
    counts: dict[str, int] = {}
    for name, parameter in model.named_parameters():  # yields a shared parameter once
        submodule = name.split(".")[0]
        counts[submodule] = counts.get(submodule, 0) + parameter.numel()
    rows = [*counts.items(), ("total", sum(counts.values()))]
    name_width = max(len(name) for name, _ in rows)
    count_width = max(len(f"{count:,}") for _, count in rows)
    return "\n".join(f"{name:<{name_width}}  {count:>{count_width},}" for name, count in rows)
