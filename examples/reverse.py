"""Train a Transformer to reverse sentences; its cross-attention becomes an anti-diagonal."""

import torch
from torch.nn.functional import cross_entropy

from regard.config import ModelConfig
from regard.data import BOS, EOS
from regard.decoding import LengthLimits, greedy_search
from regard.models import Seq2SeqModel, build
from regard.viz import render_heatmap

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
FIRST_WORD = 4  # the ids before it are padding, BOS, EOS and unknown
LENGTH, BATCH_SIZE, STEPS = 5, 64, 450


def random_sentences(count: int) -> torch.Tensor:
    """Return sentences of five different words each."""
    return torch.stack([FIRST_WORD + torch.randperm(len(WORDS))[:LENGTH] for _ in range(count)])


def train(model: Seq2SeqModel) -> None:
    """Train the model to reverse, with a new batch at every step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    lengths = torch.full((BATCH_SIZE,), LENGTH)
    for step in range(STEPS):
        source = random_sentences(BATCH_SIZE)
        target = source.flip(1)
        inputs = torch.cat([torch.full((BATCH_SIZE, 1), BOS), target], dim=1)
        outputs = torch.cat([target, torch.full((BATCH_SIZE, 1), EOS)], dim=1)
        logits = model.logits(model(source, lengths, inputs))
        loss = cross_entropy(logits.flatten(0, 1), outputs.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3d}, loss {loss:.3f}")


def main() -> None:
    """Train, reverse one sentence, and show the attention weights of each output word."""
    torch.manual_seed(0)
    config = ModelConfig(
        width=48, layers=1, heads=1, ffn_width=64, dropout=0.0, positions="learned"
    )
    vocab_size = FIRST_WORD + len(WORDS)
    model = build(config, vocab_size)
    train(model)
    model.eval()
    source, lengths = random_sentences(1), torch.tensor([LENGTH])
    with torch.inference_mode():
        (hypothesis,) = greedy_search(model, source, lengths, limits=LengthLimits(max_length=8))
        inputs = torch.tensor([[BOS, *hypothesis.tokens]])
        _, weights = model.forward_with_weights(source, lengths, inputs)
    source_words = [WORDS[token - FIRST_WORD] for token in source[0].tolist()]
    target_words = [WORDS[token - FIRST_WORD] for token in hypothesis.tokens]
    print(f"\n{' '.join(source_words)}  ->  {' '.join(target_words)}\n")
    cross = weights.cross[0][0, 0, : len(target_words)]  # the rows that predict each word
    title = "cross-attention of each output word"
    print(render_heatmap(cross, target_words, source_words, title=title))


if __name__ == "__main__":
    main()
