"""Models learn toy tasks in seconds, and their cross-attention shows how."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.config import ModelConfig
from regard.data import BOS, EOS
from regard.decoding import LengthLimits, greedy_search
from regard.models import build

pytestmark = pytest.mark.train

VOCAB_SIZE, LENGTH, BATCH = 12, 5, 64
TRANSFORMER = ModelConfig(
    width=48, layers=1, heads=1, ffn_width=64, dropout=0.0, positions="learned"
)
RECURRENT = ModelConfig(kind="recurrent", width=48, layers=1, score="additive", dropout=0.0)


def random_sources(batch):
    """Return sources without repeated tokens, so that each token has one source position."""
    return torch.stack([4 + torch.randperm(VOCAB_SIZE - 4)[:LENGTH] for _ in range(batch)])


def train(model, task, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    lengths = torch.full((BATCH,), LENGTH)
    for _ in range(steps):
        source = random_sources(BATCH)
        target = task(source)
        inputs = torch.cat([torch.full((BATCH, 1), BOS), target], dim=1)
        outputs = torch.cat([target, torch.full((BATCH, 1), EOS)], dim=1)
        logits = model.logits(model(source, lengths, inputs))
        loss = cross_entropy(logits.flatten(0, 1), outputs.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@pytest.mark.parametrize("config", [TRANSFORMER, RECURRENT], ids=lambda config: config.kind)
@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_learned_task_shows_in_the_cross_attention(config, task, unchecked):
    change = {"copy": lambda tokens: tokens, "reverse": lambda tokens: tokens.flip(1)}[task]
    model = build(config, VOCAB_SIZE)
    model = train(model, change, steps=450 if config.kind == "transformer" else 300)
    source, lengths = random_sources(20), torch.full((20,), LENGTH)
    with torch.no_grad():
        results = greedy_search(model, source, lengths, limits=LengthLimits(max_length=8))
        target = change(source)
        correct = [
            hypothesis.tokens == tuple(tokens)
            for hypothesis, tokens in zip(results, target.tolist(), strict=True)
        ]
        assert sum(correct) >= 19
        inputs = torch.cat([torch.full((20, 1), BOS), target], dim=1)
        _, weights = model.forward_with_weights(source, lengths, inputs)
    # the rows that predict each token
    attended = weights.cross[0].mean(dim=1)[:, :LENGTH].argmax(-1)
    expected = change(torch.arange(LENGTH)[None]).expand(20, LENGTH)
    # states of a recurrent encoder also hold their neighbours, which may be attended to instead
    tolerance = 1 if config.kind == "recurrent" else 0
    assert ((attended - expected).abs() <= tolerance).float().mean() > 0.9
    assert (attended == expected).float().mean() > 0.5
