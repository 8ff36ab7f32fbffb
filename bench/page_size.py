"""Size of a page with all heads of GPT-2 small: regard's page and bertviz's head view.

    python bench/page_size.py [--tokens 128 512] [--layers 12] [--heads 12]

Weights are those of causal attention with random scores. Without bertviz, regard is measured alone;
`pip install bertviz ipython` adds it. Both pages are written as they would be opened: regard's as
one file, bertviz's as the HTML that it returns for a notebook, which needs the network.
"""

import argparse
import io
from contextlib import redirect_stdout
from importlib.util import find_spec

import torch
from torch import Tensor

from regard.trace import AttentionMap, TokenList, Trace
from regard.viz import render_page

BYTES_PER_MIB = 2**20


def causal_weights(layers: int, heads: int, tokens: int) -> list[Tensor]:
    """Return the weights of every layer: (batch, head, query, key)."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    shape = (1, heads, tokens, tokens)
    return [
        (2 * torch.randn(shape, generator=generator)).masked_fill(hidden, -torch.inf).softmax(-1)
        for _ in range(layers)
    ]


def regard_bytes(weights: list[Tensor], words: list[str]) -> int:
    """Return the size of regard's page."""
    maps = tuple(
        AttentionMap(
            name=f"h.{layer}", kind="causal", queries="text", keys="text", weights=each[0].numpy()
        )
        for layer, each in enumerate(weights)
    )
    trace = Trace(tokens={"text": TokenList(tuple(words))}, maps=maps, title="a text")
    return len(render_page(trace).encode())


def bertviz_bytes(weights: list[Tensor], words: list[str]) -> int:
    """Return the size of bertviz's head view."""
    from bertviz import head_view

    with redirect_stdout(io.StringIO()):
        page = head_view(attention=weights, tokens=words, html_action="return")
    return len(page.data.encode())


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    options = parser.parse_args()
    print("| tokens | regard, MiB | bertviz, MiB | ratio |")
    print("|---|---|---|---|")
    for tokens in options.tokens:
        weights = causal_weights(options.layers, options.heads, tokens)
        words = [f"word{n}" for n in range(tokens)]
        own, peer = regard_bytes(weights, words) / BYTES_PER_MIB, "| |"
        if find_spec("bertviz"):
            other = bertviz_bytes(weights, words) / BYTES_PER_MIB
            peer = f"| {other:.1f} | {other / own:.0f} |"
        print(f"| {tokens} | {own:.2f} {peer}", flush=True)


if __name__ == "__main__":
    main()
