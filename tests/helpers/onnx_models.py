"""Build models and write them as ONNX graphs: `python onnx_models.py FOLDER`.

A process of its own, because torch.export cannot trace the shape checks that tests switch on.
"""

import sys
from pathlib import Path

import torch

from regard.config import ModelConfig
from regard.decoding.engines import save_onnx
from regard.models import build

SOURCE_VOCAB, TARGET_VOCAB = 11, 13
CONFIGS = {
    "sinusoidal": {},
    "pre-norm, rotary, one key head": {"norm": "pre", "positions": "rotary", "key_heads": 1},
    "ALiBi": {"positions": "alibi", "tie_output": False},
    "learned": {"positions": "learned", "max_positions": 30},
    "gaussian": {"score": "gaussian"},
    "recurrent, additive": {"kind": "recurrent", "score": "additive"},
    "recurrent, bilinear": {"kind": "recurrent", "score": "bilinear", "layers": 1},
}


def build_model(name):
    """Build an untrained model, the same one in every process."""
    torch.manual_seed(0)
    config = ModelConfig(**{"width": 12, "layers": 2, "heads": 3, "ffn_width": 8} | CONFIGS[name])
    model = build(config, (SOURCE_VOCAB, TARGET_VOCAB)).eval()
    for parameter in model.parameters():
        parameter.data *= 1.3
    return model


def main() -> None:
    for name in CONFIGS:
        folder = Path(sys.argv[1]) / name
        folder.mkdir()
        save_onnx(build_model(name), folder)


if __name__ == "__main__":
    main()
