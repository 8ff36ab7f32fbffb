"""Weights of which the alignment is known."""

import torch


def peaked_weights(*sources, keys=4):
    """Return weights in which target word n attends mostly to the n-th of the given sources."""
    return torch.eye(keys)[list(sources)] * 0.8 + 0.05
