"""Self-attention over one sentence, with different scores and masks, as heat maps."""

import torch

import regard
from regard.masks import causal, window

WORDS = ["the", "cat", "sat", "on", "the", "mat"]


def main() -> None:
    """Print the attention weights of three scores, then of a mask."""
    generator = torch.Generator().manual_seed(0)
    vectors = 0.5 * torch.randn(len(WORDS), 16, generator=generator)
    vectors[4] = vectors[0]  # the same word, so the same vector

    for score in ("scaled_dot", "cosine", "gaussian"):
        context, weights = regard.look(vectors, score=score)
        assert torch.equal(context, regard.attend(vectors, score=score))  # looking changes nothing
        print(regard.viz.render_heatmap(weights, WORDS, WORDS, title=score), "\n")

    mask = causal() & window(2)
    weights = regard.weights(vectors, mask=mask)
    title = "each word and the two before it"
    print(regard.viz.render_heatmap(weights, WORDS, WORDS, title=title), "\n")
    print(mask.explain(query=5, key=1))


if __name__ == "__main__":
    main()
