"""The scripts of tools/ that make files of the repository."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

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
        assert animation.info["loop"] == 0  # for ever
    assert all(np.abs(a - b).max() > 0 for a, b in pairwise(frames))
    assert f"wrote {out}: {len(frames)} frames" in capsys.readouterr().out
