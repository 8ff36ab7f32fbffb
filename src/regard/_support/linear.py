"""Linear layers and matrix products that can train with oneDNN instead of MKL.

torch multiplies float32 matrices with MKL, which on processors of other vendors than Intel uses
AVX2 at most: 110 GFLOP/s on a core of an AMD EPYC 9005, where oneDNN, the other library inside
torch, reaches 245 with AVX-512. torch chooses oneDNN in compiled code, through the operator that is
called here. It has no gradient of its own, and results differ from MKL's by rounding.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

_MIN_ROWS = 64  # below it, MKL is as fast
_ROW_STEPS = 8  # row counts per power of two: oneDNN compiles a kernel for each shape

_is_enabled = ContextVar("_is_enabled", default=False)


@contextmanager
def fast_products() -> Iterator[None]:
    """Let `Linear` and `multiply` use the faster library of this CPU, inside the context.

    It is meant for training: what `Linear` computes inside can be differentiated once.
    """
    token = _is_enabled.set(is_onednn_faster())
    try:
        yield
    finally:
        _is_enabled.reset(token)


@cache
def is_onednn_faster() -> bool:
    """Return whether this CPU has AVX-512, and another vendor than MKL."""
    return (
        "AuthenticAMD" in _cpu_vendor()
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def _cpu_vendor() -> str:
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:  # Linux
        return next((line for line in lines if line.startswith("vendor_id")), "")
    return platform.processor()


class Linear(nn.Linear):
    """`nn.Linear`; inside `fast_products`, on the faster library."""

    def forward(self, rows: Tensor) -> Tensor:
        """Return rows · weightᵀ + bias."""
        weight, bias = self.weight, self.bias
        if not _is_onednn_chosen(rows, weight):
            return nn.functional.linear(rows, weight, bias)
        return _OneDNNLinear.apply(rows, weight, bias)  # type: ignore[no-any-return, no-untyped-call]


def multiply(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the product of two matrices; inside `fast_products`, of the faster library.

    Args:
        left: (row, inner).
        right: (inner, column).
        out: where MKL may write the product.
    """
    if _is_onednn_chosen(left, right):
        return _multiply_transposed(left, right.t())
    return torch.mm(left, right, out=out)


def _is_onednn_chosen(rows: Tensor, weight: Tensor) -> bool:
    return (
        not torch.compiler.is_compiling()
        and _is_enabled.get()
        and rows.numel() >= _MIN_ROWS * rows.shape[-1] > 0
        and rows.dtype == weight.dtype == torch.float32
        and rows.device.type == weight.device.type == "cpu"
    )


class _OneDNNLinear(Function):
    """rows · weightᵀ + bias; rows are padded, so that few kernels serve batches of any size."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        flat = _pad_rows(rows.reshape(-1, rows.shape[-1]))
        ctx.save_for_backward(flat, weight)
        ctx.shape = rows.shape
        result = _multiply_transposed(flat, weight, bias)
        return result[: rows.shape[:-1].numel()].view(*rows.shape[:-1], len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        flat, weight = ctx.saved_tensors
        gradient = _pad_rows(gradient.reshape(-1, len(weight)))
        grad_rows = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            product = _multiply_transposed(gradient, weight.t())
            grad_rows = product[: ctx.shape[:-1].numel()].view(ctx.shape)
        if ctx.needs_input_grad[1]:
            grad_weight = _multiply_transposed(gradient.t(), flat.t())
        if ctx.needs_input_grad[2]:
            grad_bias = gradient.sum(dim=0)
        return grad_rows, grad_weight, grad_bias


def _multiply_transposed(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return left · rightᵀ + bias, computed by oneDNN in float32."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")
    return product


def _pad_rows(rows: Tensor) -> Tensor:
    """Append rows of zeros, up to one of a few numbers of rows."""
    count = len(rows)
    step = max(1 << (count - 1).bit_length(), _MIN_ROWS) // _ROW_STEPS
    missing = -count % step
    if not missing:
        return rows.contiguous()
    padded = rows.new_empty(count + missing, rows.shape[1])
    padded[:count] = rows
    padded[count:] = 0.0
    return padded
