"""A Transformer learns to say words backwards, and its attention shows how: an anti-diagonal."""

import torch
from torch.nn.functional import cross_entropy

from regard.config import ModelConfig
from regard.data import BOS, EOS
from regard.decoding import LengthLimits, greedy_search
from regard.models import build
from regard.viz import render_heatmap

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
FIRST = 4  # the numbers before are padding, start, end and unknown
LENGTH, BATCH, STEPS = 5, 64, 450


def sentences(count: int) -> torch.Tensor:
    """Draw sentences of five words, none twice."""
    return torch.stack([FIRST + torch.randperm(len(WORDS))[:LENGTH] for _ in range(count)])


def learn(model: torch.nn.Module) -> None:
    """Teach the model to reverse; each step a new batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    lengths = torch.full((BATCH,), LENGTH)
    for step in range(STEPS):
        source = sentences(BATCH)
        wanted = source.flip(1)
        read = torch.cat([torch.full((BATCH, 1), BOS), wanted], dim=1)
        written = torch.cat([wanted, torch.full((BATCH, 1), EOS)], dim=1)
        states = model(source, lengths, read)
        loss = cross_entropy(model.logits(states).flatten(0, 1), written.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3d}, loss {loss:.3f}")


def main() -> None:
    """Learn, reverse one sentence, and show where each word was looked for."""
    torch.manual_seed(0)
    settings = ModelConfig(
        width=48, layers=1, heads=1, ffn_width=64, dropout=0.0, positions="learned"
    )
    model = build(settings, (FIRST + len(WORDS), FIRST + len(WORDS)))
    learn(model)
    model.eval()
    source, lengths = sentences(1), torch.tensor([LENGTH])
    with torch.inference_mode():
        (found,) = greedy_search(model, source, lengths, limits=LengthLimits(max_length=8))
        read = torch.tensor([[BOS, *found.tokens]])
        _, looks = model.forward_with_weights(source, lengths, read)
    heard = [WORDS[token - FIRST] for token in source[0].tolist()]
    said = [WORDS[token - FIRST] for token in found.tokens]
    print(f"\n{' '.join(heard)}  ->  {' '.join(said)}\n")
    weights = looks.cross[0][0, 0, : len(said)]  # the row that writes each word
    print(render_heatmap(weights, said, heard, title="where it looks as it says each word"))


if __name__ == "__main__":
    main()
