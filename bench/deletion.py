"""Deletion curves: does removing the tokens that a method attributes most hurt the model most?

For sentences of the phrasebook, the source tokens are ranked by each method, the first k are
removed, and the log-probability of the model's own translation is measured again. A method is
useful if that falls more than after removing k random tokens.

    python bench/deletion.py [--sentences 100] [--removed 3] [--captum]

`--captum` ranks by three methods of captum, too, of the embeddings with their positions.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np
import torch

from regard import Run, Trace, load
from regard.analysis import METHODS
from regard.data import BOS, EOS, pad_sequences
from regard.data.phrasebook import load_phrasebook
from regard.masks import padding

RANDOM_DRAWS = 10


@torch.inference_mode()
def log_probability(run: Run, source: Sequence[int], target: Sequence[int]) -> float:
    """Return the log-probability of target tokens and the end token."""
    padded, lengths = pad_sequences([list(source)])
    states = run.model(padded, lengths, torch.tensor([[BOS, *target]]))
    log_probs = run.model.logits(states[0]).log_softmax(-1)
    return float(log_probs.gather(1, torch.tensor([*target, EOS])[:, None]).sum())


def source_attribution(trace: Trace) -> np.ndarray:
    """Return one number per source token: all maps over the source, from all rows and heads."""
    maps = [m for m in trace.maps if m.kind == "cross" and m.keys == "source"]
    signs = [-1 if m.name.endswith("against the output") else 1 for m in maps]
    return np.sum([sign * m.weights.sum((0, 1)) for sign, m in zip(signs, maps, strict=True)], 0)


def captum_attributions(
    run: Run, source: Sequence[int], target: Sequence[int]
) -> dict[str, np.ndarray]:
    """Return one number per source token by methods of captum."""
    from captum import attr

    ids = torch.tensor([list(source)])
    keep = torch.ones_like(ids, dtype=torch.bool)
    vectors = run.model.source_embedding(ids).detach()

    def score(embedded: torch.Tensor) -> torch.Tensor:
        encoded = run.model.decoder.project_source(run.model.encoder(embedded, padding(keep)), keep)
        states = run.model.decode(torch.tensor([[BOS, *target]]), encoded)
        log_probs = run.model.logits(states[0]).log_softmax(-1)
        return log_probs.gather(1, torch.tensor([*target, EOS])[:, None]).sum()[None]

    positions = torch.arange(len(source))[None, :, None].expand_as(vectors)
    methods: dict[str, Callable[[], torch.Tensor]] = {
        "captum IntegratedGradients": lambda: attr.IntegratedGradients(score).attribute(
            vectors, n_steps=16, internal_batch_size=1
        ),
        "captum InputXGradient": lambda: attr.InputXGradient(score).attribute(
            vectors.clone().requires_grad_()
        ),
        "captum FeatureAblation": lambda: (
            attr.FeatureAblation(score).attribute(vectors, feature_mask=positions)
            / vectors.shape[-1]
        ),
    }
    return {name: run_it()[0].sum(-1).detach().numpy() for name, run_it in methods.items()}


def drops(
    run: Run, source: str, removed: int, methods: Sequence[str], seed: int, captum: bool = False
) -> dict[str, list[float]]:
    """Return how much log-probability is lost after 1, 2, … removed tokens, by method."""
    ids = run.tokenizers.source.encode(source)
    target = run.translate(source).tokens
    full = log_probability(run, ids, target)

    def log_prob_drops(order: Sequence[int]) -> list[float]:
        remaining = [
            [t for n, t in enumerate(ids) if n not in order[:k]] for k in range(1, removed + 1)
        ]
        return [full - log_probability(run, tokens, target) for tokens in remaining]

    generator = np.random.default_rng(seed)
    randoms = [
        log_prob_drops(generator.permutation(len(ids)).tolist()) for _ in range(RANDOM_DRAWS)
    ]
    curves = {"random": np.mean(randoms, axis=0).tolist()}
    for method in methods:
        scores = source_attribution(run.attribute(source, target, method=method, steps=16))
        curves[method] = log_prob_drops(np.argsort(-scores, kind="stable").tolist())
    for name, scores in (captum_attributions(run, ids, target) if captum else {}).items():
        curves[name] = log_prob_drops(np.argsort(-scores, kind="stable").tolist())
    return curves


def main() -> None:
    """Print a table of all methods."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--removed", type=int, default=3)
    parser.add_argument("--captum", action="store_true")
    options = parser.parse_args()
    run = load("demo-model")
    pairs = load_phrasebook("fr", train=0).test
    sources = [p.source for p in pairs if len(run.tokenizers.source.encode(p.source)) > 5]
    curves = [
        drops(run, source, options.removed, METHODS, seed, captum=options.captum)
        for seed, source in enumerate(sources[: options.sentences])
    ]
    print(f"log-probability lost (nats), mean of {len(curves)} sentences")
    for name in curves[0]:
        mean = np.mean([c[name] for c in curves], axis=0)
        wins = np.mean([c[name][0] > c["random"][0] for c in curves])
        cells = " | ".join(f"{x:.1f}" for x in mean)
        print(f"| {name} | {cells} | {wins:.0%} |")


if __name__ == "__main__":
    main()
