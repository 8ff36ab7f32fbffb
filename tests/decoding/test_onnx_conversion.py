"""ONNX graphs of a model agree with torch, step by step, in every part of the state."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from helpers import onnx_models
from helpers.onnx_models import SOURCE_VOCAB, TARGET_VOCAB
from regard.data import BOS, EOS
from regard.decoding import LengthLimits, greedy_search

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnxscript", reason="the extra onnx is not installed")

pytestmark = pytest.mark.compile

TOLERANCE = 1e-4


class Graphs:
    """The two graphs, run by ONNX Runtime."""

    def __init__(self, folder):
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(str(folder / name))
            for name in ("encoder.onnx", "decoder.onnx")
        )

    def encode(self, source, lengths):
        inputs = {"source": source.numpy(), "lengths": lengths.numpy()}
        names = [output.name for output in self.encoder.get_outputs()]
        return dict(zip(names, self.encoder.run(None, inputs), strict=True))

    def step(self, tokens, lengths, state):
        inputs = {"tokens": tokens.numpy(), "lengths": lengths.numpy(), **state}
        names = [output.name.removeprefix("next_") for output in self.decoder.get_outputs()]
        outputs = dict(zip(names, self.decoder.run(None, inputs), strict=True))
        logits = torch.from_numpy(outputs.pop("logits"))
        return logits, state | outputs

    def greedy(self, source, lengths, max_length):
        """Return the tokens of each batch item."""
        state, tokens = self.encode(source, lengths), torch.full((len(source),), BOS)
        written = []
        for _ in range(max_length):
            logits, state = self.step(tokens, lengths, state)
            logits[:, [0, BOS]] = -torch.inf
            tokens = logits.argmax(dim=-1)
            written.append(tokens)
        rows = torch.stack(written, dim=1).tolist()
        return [tuple(row[: row.index(EOS)] if EOS in row else row) for row in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx")
    command = [sys.executable, onnx_models.__file__, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return path


@pytest.fixture(scope="module", params=onnx_models.CONFIGS)
def model_and_graphs(request, folder):
    return onnx_models.build_model(request.param), Graphs(folder / request.param)


def random_batch(batch, length):
    lengths = torch.randint(1, length + 1, (batch,))
    lengths[-1] = length
    source = torch.randint(4, SOURCE_VOCAB, (batch, length))
    return source.masked_fill(torch.arange(length) >= lengths[:, None], 0), lengths


@pytest.mark.parametrize(("batch", "length"), [(3, 7), (1, 1), (2, 16)])
@torch.no_grad()
def test_encoder_and_steps_agree_with_torch(model_and_graphs, batch, length):
    model, graphs = model_and_graphs
    source, lengths = random_batch(batch, length)
    encoded, state = model.encode(source, lengths), graphs.encode(source, lengths)
    is_token = (torch.arange(length) < lengths[:, None]).numpy()
    for layer, key_values in enumerate(encoded.key_values):
        for name, expected in zip(("keys", "values"), key_values, strict=True):
            actual = np.moveaxis(state[f"source_{name}_{layer}"], -2, 1)[is_token]
            expected = np.moveaxis(expected.numpy(), -2, 1)[is_token]
            np.testing.assert_allclose(actual, expected, atol=TOLERANCE)
    torch_state, tokens = model.init_state(encoded), torch.full((batch,), BOS)
    for step in range(6):
        outputs, torch_state = model.step(tokens[:, None], torch_state)
        logits, state = graphs.step(tokens, lengths, state)
        torch.testing.assert_close(logits, model.logits(outputs[:, 0]), atol=TOLERANCE, rtol=0)
        if "hidden" in state:
            expected = torch_state.hidden.numpy()
            np.testing.assert_allclose(state["hidden"], expected, atol=TOLERANCE)
        else:
            for layer, cache in enumerate(torch_state.caches):
                assert state[f"keys_{layer}"].shape[2] == step + 1
                for name, expected in (("keys", cache.keys), ("values", cache.values)):
                    actual = state[f"{name}_{layer}"]
                    np.testing.assert_allclose(actual, expected.numpy(), atol=TOLERANCE)
        tokens = torch.randint(4, TARGET_VOCAB, (batch,))


@pytest.mark.parametrize(("batch", "length"), [(4, 5), (1, 9)])
def test_greedy_search_gives_the_tokens_of_torch(model_and_graphs, batch, length):
    model, graphs = model_and_graphs
    source, lengths = random_batch(batch, length)
    limits = LengthLimits(max_length=12)
    expected = [each.tokens for each in greedy_search(model, source, lengths, limits=limits)]
    assert graphs.greedy(source, lengths, limits.max_length) == expected
