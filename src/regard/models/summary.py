"""How many numbers a model learns, part by part."""

from torch import nn


def describe(model: nn.Module) -> str:
    """Count the parameters of each part, shared ones once, as a table."""
    counts: dict[str, int] = {}
    seen: set[int] = set()
    for name, parameter in model.named_parameters():
        if id(parameter) not in seen:
            seen.add(id(parameter))
            part = name.split(".")[0]
            counts[part] = counts.get(part, 0) + parameter.numel()
    rows = [*counts.items(), ("total", sum(counts.values()))]
    word = max(len(name) for name, _ in rows)
    number = max(len(f"{count:,}") for _, count in rows)
    return "\n".join(f"{name:<{word}}  {count:>{number},}" for name, count in rows)
