"""Pruning heads of the demo translator: BLEU against the number of heads removed.

    python bench/prune_heads.py [--sentences 200] [--draws 3] [--step 3]

Heads are ranked by `regard.analysis.head_importance`, the change of the loss on validation pairs
when a head alone is ablated, and then removed together under `regard.edit`: the least important
first, the most important first, and in random orders. Nothing is trained in between (Michel et al.
2019, "Are Sixteen Heads Really Better than One?").
"""

import argparse
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

import regard
from regard import Run, analysis
from regard.config import SearchConfig
from regard.data import BOS, EOS, PAD, pad_sequences
from regard.data.phrasebook import AlignedPair, load_phrasebook
from regard.decoding import TorchEngine, TranslationOptions, sentence_batches
from regard.evaluation import bleu

Head = tuple[str, int]
RANKED_PAIRS = 128  # of the validation set, in batches of 32


def make_batches(
    run: Run, pairs: Sequence[AlignedPair], size: int = 32
) -> list[tuple[Tensor, ...]]:
    """Return teacher-forced batches: source, lengths, and target with BOS and without EOS."""
    batches = []
    for start in range(0, len(pairs), size):
        chunk = pairs[start : start + size]
        source, lengths = pad_sequences(
            run.tokenizers.source.encode_batch([p.source for p in chunk])
        )
        targets = run.tokenizers.target.encode_batch([p.target for p in chunk])
        inputs, _ = pad_sequences([[BOS, *tokens] for tokens in targets])
        batches.append((source, lengths, inputs))
    return batches


def rank_heads(run: Run, pairs: Sequence[AlignedPair]) -> analysis.HeadImportance:
    """Measure how much the loss per token rises without each head."""

    def loss(states: Tensor, batch: tuple[Tensor, ...]) -> Tensor:
        inputs = batch[2]
        outputs = torch.nn.functional.pad(inputs[:, 1:], (0, 1), value=PAD)
        ends = (inputs != PAD).sum(1) - 1
        outputs[torch.arange(len(outputs)), ends] = EOS
        logits = run.model.logits(states)
        return cross_entropy(logits.flatten(0, 1), outputs.flatten(), ignore_index=PAD)

    batches = make_batches(run, pairs)
    return analysis.head_importance(run.model, batches, loss, progress=False)


def bleu_without(run: Run, heads: Sequence[Head], pairs: Sequence[AlignedPair]) -> float:
    """Translate greedily without some heads."""
    with regard.edit(run.model) as edit:
        for module in dict.fromkeys(module for module, _ in heads):
            edit[module].heads([head for name, head in heads if name == module]).ablate()
        # in this thread, as edits apply to the thread that made them: Run.translate uses others
        options = TranslationOptions(SearchConfig(beam_size=1))
        engine = TorchEngine(run.model, run.tokenizers)
        translations = [""] * len(pairs)
        sources = [pair.source for pair in pairs]
        for batch in sentence_batches(run.model, run.tokenizers, sources, options):
            results = engine.translate_batch(batch, options, None)
            for row, (best,) in zip(batch.rows, results, strict=True):
                translations[row] = str(best)
    return bleu(translations, [pair.target for pair in pairs])


def main() -> None:
    """Print a table, a row for each number of heads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--draws", type=int, default=3, help="random orders")
    parser.add_argument("--step", type=int, default=3, help="heads removed at a time")
    options = parser.parse_args()
    torch.set_num_threads(1)
    run = regard.load("demo-model")
    phrases = load_phrasebook("fr", train=0)
    importance = rank_heads(run, phrases.valid[:RANKED_PAIRS])
    most_first = importance.ablation.ranking()
    generator = np.random.default_rng(0)
    orders = {"least important first": most_first[::-1], "most important first": most_first}
    shuffled = [
        [most_first[n] for n in generator.permutation(len(most_first))]
        for _ in range(options.draws)
    ]
    pairs = phrases.test[: options.sentences]
    print(
        f"{len(most_first)} heads; rank correlation of ablation and gradient "
        f"{importance.rank_correlation:.2f}; the most important: "
        + ", ".join(f"{module} {head}" for module, head in most_first[:3])
    )
    print(f"BLEU of {len(pairs)} test sentences, greedy search")
    print("| heads removed | least important first | random (mean, range) | most important first |")
    print("|---|---|---|---|")
    for count in range(0, len(most_first) + 1, options.step):
        least, most = (bleu_without(run, order[:count], pairs) for order in orders.values())
        drawn = [bleu_without(run, order[:count], pairs) for order in shuffled]
        print(
            f"| {count} | {least:.1f} | {np.mean(drawn):.1f} ({min(drawn):.1f}–{max(drawn):.1f}) "
            f"| {most:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
