"""The scripts of tools/ that make files of the repository."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from regard.data.phrasebook import load_phrasebook
from regard.runs import load

TOOLS = Path(__file__).parents[1] / "tools"

pytestmark = pytest.mark.usefixtures("unchecked")


def load_tool(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def animate_training(monkeypatch):
    """The script that animates a training, with small frames of a few pairs."""
    pytest.importorskip("PIL", reason="Pillow is not installed")
    module = load_tool("animate_training")
    for name, value in (("ALIGNMENT_PAIRS", 2), ("DOTS_PER_INCH", 40), ("BLENDED_FRAMES", 2)):
        monkeypatch.setattr(module, name, value)
    return module


def test_training_is_animated_from_the_snapshots_of_a_run(
    animate_training, tiny_run, tmp_path, monkeypatch, capsys
):
    from PIL import Image

    out = tmp_path / "training.gif"
    monkeypatch.setattr(sys, "argv", ["animate_training.py", str(tiny_run), str(out)])
    animate_training.main()
    snapshots = len(list((tiny_run / "snapshots").iterdir()))
    with Image.open(out) as animation:
        assert animation.n_frames == 1 + animate_training.BLENDED_FRAMES * (snapshots - 1)
        frames = []
        for number in range(animation.n_frames):
            animation.seek(number)
            frames.append(np.asarray(animation.convert("RGB"), dtype=float))
        assert animation.info["loop"] == 0  # endlessly
    assert all(np.abs(a - b).max() > 0 for a, b in pairwise(frames))
    assert f"wrote {out}: {len(frames)} frames" in capsys.readouterr().out


def test_demo_model_is_exported_in_half_precision(tiny_run, tmp_path, monkeypatch, capsys):
    demo_model, trainings = load_tool("demo_model"), []

    def train_demo(folder, *, steps, seed):
        trainings.append((folder, steps, seed))
        return load(tiny_run)

    book = load_phrasebook("fr", train=0)
    monkeypatch.setattr(demo_model, "train_demo", train_demo)
    monkeypatch.setattr(
        demo_model, "load_phrasebook", lambda to, train: book._replace(test=book.test[:5])
    )
    out = tmp_path / "small-model"
    options = ["--run", str(tmp_path / "run"), "--steps", "3", "--seed", "5", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["demo_model.py", *options])
    demo_model.main()
    assert trainings == [(tmp_path / "run", 3, 5)]

    size = sum(path.stat().st_size for path in out.iterdir())
    assert f"wrote {out}: {size:,} bytes, test BLEU " in capsys.readouterr().out
    assert {tensor.dtype for tensor in load_file(out / "model.safetensors").values()} == {
        torch.float16
    }
    original, exported = load(tiny_run), load(out)
    assert exported.settings == original.settings
    for name, tensor in original.model.state_dict().items():
        torch.testing.assert_close(exported.model.state_dict()[name], tensor.half().float())
    assert "small-model" in (out / "README.md").read_text(encoding="utf-8")

    monkeypatch.setattr(demo_model, "MAX_BYTES", size - 1)
    with pytest.raises(SystemExit, match=f"the export must have at most {size - 1:,} bytes"):
        demo_model.main()
