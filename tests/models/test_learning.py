"""Tiny tasks learned in seconds, and where the trained model looks."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.config import ModelConfig
from regard.data import BOS, EOS
from regard.decoding.search import LengthLimits, greedy
from regard.models import build

VOCABULARY, LENGTH, BATCH = 12, 5, 64
TRANSFORMER = ModelConfig(
    width=48, layers=1, heads=1, ffn_width=64, dropout=0.0, positions="learned"
)
RECURRENT = ModelConfig(kind="recurrent", width=48, layers=1, score="additive", dropout=0.0)


def some_words(batch):
    """Draw sentences without repeated words, so that each has one place to look for."""
    return torch.stack([4 + torch.randperm(VOCABULARY - 4)[:LENGTH] for _ in range(batch)])


def learn(model, task, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    lengths = torch.full((BATCH,), LENGTH)
    for _ in range(steps):
        source = some_words(BATCH)
        wanted = task(source)
        read = torch.cat([torch.full((BATCH, 1), BOS), wanted], dim=1)
        written = torch.cat([wanted, torch.full((BATCH, 1), EOS)], dim=1)
        states = model.decode(read, model.encode(source, lengths))
        loss = cross_entropy(model.output(states).flatten(0, 1), written.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@pytest.mark.parametrize("settings", [TRANSFORMER, RECURRENT], ids=lambda s: s.kind)
@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_a_learned_task_is_seen_in_where_the_model_looks(settings, task, unchecked):
    change = {"copy": lambda words: words, "reverse": lambda words: words.flip(1)}[task]
    model = build(settings, (VOCABULARY, VOCABULARY))
    model = learn(model, change, steps=450 if settings.kind == "transformer" else 300)
    source, lengths = some_words(20), torch.full((20,), LENGTH)
    with torch.no_grad():
        texts = greedy(
            model, model.start(model.encode(source, lengths)), 20, LengthLimits(longest=8)
        )
        wanted = change(source)
        right = [
            text.tokens == tuple(words) for text, words in zip(texts, wanted.tolist(), strict=True)
        ]
        assert sum(right) >= 19
        read = torch.cat([torch.full((20, 1), BOS), wanted], dim=1)
        _, looks = model.look(source, lengths, read)
    looked_at = looks.cross[0].mean(dim=1)[:, :LENGTH].argmax(-1)  # the row that writes each word
    places = change(torch.arange(LENGTH)[None]).expand(20, LENGTH)
    # the states of a recurrent reader hold their neighbours too, so it may look at one of these
    near = 1 if settings.kind == "recurrent" else 0
    assert ((looked_at - places).abs() <= near).float().mean() > 0.9
    assert (looked_at == places).float().mean() > 0.5
