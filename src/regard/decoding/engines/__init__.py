"""Translation engines: each searches the translations of a batch of sentences.

- `TorchEngine` searches with the model itself. It has every option, and is the reference.
- `CTranslate2Engine` searches with CTranslate2, in float32 or int8, for models that CTranslate2 can
  represent (`unsupported_part` says which part it cannot). `ctranslate2_conversion` writes its
  model files.

`onnx_conversion` writes a model as ONNX graphs, for programs that do not use regard; it traces the
modules of `onnx_modules`.

Both implement `Engine`. Attention weights do not depend on the engine: a trace is one pass of the
torch model over the translation.
"""

from regard.decoding.engines.base import Engine as Engine
from regard.decoding.engines.ctranslate2_conversion import save_ctranslate2 as save_ctranslate2
from regard.decoding.engines.ctranslate2_conversion import unsupported_part as unsupported_part
from regard.decoding.engines.ctranslate2_engine import CTranslate2Engine as CTranslate2Engine
from regard.decoding.engines.onnx_conversion import save_onnx as save_onnx
from regard.decoding.engines.quantization import QUANTIZATIONS as QUANTIZATIONS
from regard.decoding.engines.quantization import check_quantization as check_quantization
from regard.decoding.engines.quantization import max_batch_size as max_batch_size
from regard.decoding.engines.torch_engine import TorchEngine as TorchEngine

__all__ = [
    "QUANTIZATIONS",
    "CTranslate2Engine",
    "Engine",
    "TorchEngine",
    "check_quantization",
    "max_batch_size",
    "save_ctranslate2",
    "save_onnx",
    "unsupported_part",
]
