"""Conversion of a translation model to two ONNX graphs: the encoder, and one step of the decoder.

`encoder.onnx` maps `source` (batch, source) and `lengths` (batch) to everything that the decoder
reads: keys and values of the source for every layer (`source_keys_0`, `source_values_0`, …) and
the state before the first step. `decoder.onnx` maps `tokens` (batch), `lengths`, these keys and
values and the state to `logits` (batch, token) and the next state. The state of a Transformer is
its KV cache (`keys_0`, `values_0`, …), empty at first; that of a recurrent model is `hidden`. Each
output `next_keys_0` is the input `keys_0` of the next step. Batch size and lengths are dynamic.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard._support.extras import needs_extra
from regard.decoding.engines.onnx_modules import (
    OPSET,
    DynamicAxes,
    RecurrentEncoder,
    RecurrentStep,
    TransformerEncoder,
    TransformerStep,
    traceable_copy,
)
from regard.errors import RegardError
from regard.models import RecurrentModel, Seq2SeqModel, Transformer

ENCODER, DECODER = "encoder.onnx", "decoder.onnx"


def save_onnx(model: Seq2SeqModel, folder: Path) -> dict[str, str]:
    """Write a model as two ONNX graphs, `encoder.onnx` and `decoder.onnx`, in float32.

    Args:
        model: a Transformer or a recurrent model, with any score and positions.
        folder: an existing folder.

    Returns:
        The inputs that the decoder takes from the encoder's outputs, with their shapes.

    Raises:
        RegardError: if the model is of another kind.
        MissingExtraError: if onnx or onnxscript is not installed.
    """
    if not isinstance(model, Transformer | RecurrentModel):
        raise RegardError(
            f"ONNX export needs a Transformer or a RecurrentModel, but it is a "
            f"{type(model).__name__}"
        )
    with needs_extra("onnx", "ONNX export needs"):
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    model = traceable_copy(model)
    encoder: TransformerEncoder | RecurrentEncoder
    decoder: TransformerStep | RecurrentStep
    if isinstance(model, Transformer):
        encoder, decoder = TransformerEncoder(model), TransformerStep(model)
    else:
        encoder, decoder = RecurrentEncoder(model), RecurrentStep(model)
    # sizes above 1, which the exporter takes for constants
    source, lengths = torch.ones(2, 3, dtype=torch.long), torch.tensor([3, 2])
    with torch.no_grad():
        outputs = encoder(source, lengths)
        count = len(decoder.source_names)
        source_tensors, state = outputs[:count], [decoder.example(x) for x in outputs[count:]]
    _export(
        encoder,
        {"source": source, "lengths": lengths},
        {"source": {0: "batch", 1: "source"}, "lengths": {0: "batch"}},
        [*decoder.source_names, *decoder.state_names],
        folder / ENCODER,
    )
    _export(
        decoder,
        {
            "tokens": torch.ones(2, dtype=torch.long),
            "lengths": lengths,
            "source": source_tensors,
            "state": state,
        },
        {
            "tokens": {0: "batch"},
            "lengths": {0: "batch"},
            "source": [decoder.source_axes] * count,
            "state": [decoder.state_axes] * len(state),
        },
        ["logits", *(f"next_{name}" for name in decoder.state_names)],
        folder / DECODER,
        ["tokens", "lengths", *decoder.source_names, *decoder.state_names],
    )
    shapes = [_shape(each, decoder.source_axes) for each in source_tensors]
    shapes += [_shape(each, decoder.state_axes) for each in state]
    return dict(zip([*decoder.source_names, *decoder.state_names], shapes, strict=True))


def _shape(tensor: Tensor, axes: DynamicAxes) -> str:
    return ", ".join(str(axes.get(axis, size)) for axis, size in enumerate(tensor.shape))


def _export(
    module: nn.Module,
    inputs: dict[str, Any],
    axes: dict[str, Any],
    output_names: Sequence[str],
    path: Path,
    input_names: Sequence[str] | None = None,
) -> None:
    """Trace a module and write its graph."""
    with torch.no_grad(), _silent():
        program = torch.onnx.export(
            module.eval(),
            kwargs=inputs,
            dynamic_shapes=axes,
            input_names=list(inputs if input_names is None else input_names),
            output_names=list(output_names),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        program.save(str(path))


@contextmanager
def _silent() -> Iterator[None]:
    """Hide what the exporter warns of: libraries that are not installed, axes of equal names."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
