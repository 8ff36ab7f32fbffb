"""Quantizations of CTranslate2: their names, which a device has, and the batches that suit them."""

import torch

from regard._support.extras import needs_extra
from regard.errors import RegardError, unknown_name

QUANTIZATIONS = (
    "float32",
    "int8",
    "int8_float32",
    "int16",
    "float16",
    "int8_float16",
    "bfloat16",
    "int8_bfloat16",
)
# Sentences that a CPU thread decodes together. Products of floats need more rows than those of
# integers to reach their speed; smaller batches are shared more evenly between threads. Sentences
# per second with 128, 64 and 32 (`bench/decode.py --batch-sizes`): greedy 984, 979, 839 in float32
# and 1,735, 1,825, 1,980 in int8; beam size 5 280, 302, 294 and 384, 465, 492.
CPU_BATCH_SIZE = 64
CPU_BATCH_SIZE_INTEGER = 32


def check_quantization(quantization: str, device: torch.device | str = "cpu") -> str:
    """Return the name of a quantization that a device can compute.

    Raises:
        RegardError: if there is no such quantization, or the device lacks it.
        MissingExtraError: if CTranslate2 is not installed.

    Example:
        >>> check_quantization("int9")
        Traceback (most recent call last):
        regard.errors.RegardError: no quantization is called 'int9'. Did you mean 'int8'? ...
    """
    if quantization not in QUANTIZATIONS:
        raise unknown_name("quantization", quantization, QUANTIZATIONS)
    with needs_extra("fast", "the CTranslate2 engine needs"):
        import ctranslate2
    device = torch.device(device)
    supported = ctranslate2.get_supported_compute_types(device.type, device.index or 0)
    if quantization not in supported:
        offered = ", ".join(name for name in QUANTIZATIONS if name in supported)
        kind = "CPU" if device.type == "cpu" else "GPU"
        raise RegardError(
            f"quantization must be one that this {kind} supports ({offered}), but it is "
            f"{quantization}"
        )
    return quantization


def max_batch_size(quantization: str, device: torch.device | str = "cpu") -> int:
    """Return how many sentences CTranslate2 decodes together; 0 for all sentences of a batch.

    Example:
        >>> max_batch_size("float32") > max_batch_size("int8")
        True
    """
    if torch.device(device).type != "cpu":
        return 0
    return CPU_BATCH_SIZE_INTEGER if quantization.startswith("int") else CPU_BATCH_SIZE
