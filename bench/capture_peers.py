"""Capture side by side with its peers: all attention weights of one forward pass of GPT-2.

    python bench/capture_peers.py [--tokens 512] [--layers 12] [--width 768] [--rounds 5]

One model with random parameters and the shape of GPT-2 small, one thread. A peer that is not
installed is left out; an environment with all of them:

    python -m venv peers
    peers/bin/pip install torch==2.13.0 'transformer_lens>=4' nnsight captum .
    peers/bin/python bench/capture_peers.py

- plain: the model as it is, on torch's fused kernel, nothing captured.
- regard: `regard.watch` around the same model; `weights` of every layer are read.
- Hugging Face: the model switched to its eager implementation, `output_attentions=True`.
- nnsight: the model switched to eager; the second output of every attention module is saved.
- captum: the model switched to eager; `LayerActivation` of every attention module.
- TransformerLens: a bridge that replaces the modules of the model, switched to eager; patterns
  from its cache.

CPU time and memory belong to one pass with all weights held at its end. Memory is the peak during
one pass, in a process of its own, after a small pass has loaded what is loaded once. "output" is
the largest difference of the logits from the plain pass.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import regard
from memory import cost

VOCABULARY = 1000  # small, so that the output layer does not dominate
Pass = Callable[[], tuple[Tensor, list[Tensor]]]
"""Returns logits, and the weights of every layer: (batch, head, query, key)."""


class Shape(NamedTuple):
    """Size of the model and of its input."""

    tokens: int
    layers: int
    width: int

    @property
    def heads(self) -> int:
        """Number of heads of 64 dimensions."""
        return self.width // 64


def gpt2(shape: Shape, implementation: str) -> GPT2LMHeadModel:
    """Return the model with the same random parameters every time."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=max(shape.tokens, 1024),
        n_embd=shape.width,
        n_layer=shape.layers,
        n_head=shape.heads,
        attn_implementation=implementation,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config).eval()


def tokens_of(shape: Shape) -> Tensor:
    """Return one sequence of random tokens."""
    return torch.randint(VOCABULARY, (1, shape.tokens), generator=torch.Generator().manual_seed(0))


def plain(shape: Shape) -> Pass:
    """Capture nothing."""
    model, tokens = gpt2(shape, "sdpa"), tokens_of(shape)
    return lambda: (model(tokens).logits, [])


def with_regard(shape: Shape) -> Pass:
    """Capture with `regard.watch`."""
    model, tokens = gpt2(shape, "sdpa"), tokens_of(shape)

    def run() -> tuple[Tensor, list[Tensor]]:
        with regard.watch(model) as capture:
            logits = model(tokens).logits
        return logits, [record.weights for record in capture]

    return run


def with_hugging_face(shape: Shape) -> Pass:
    """Ask the model for its weights."""
    model, tokens = gpt2(shape, "eager"), tokens_of(shape)

    def run() -> tuple[Tensor, list[Tensor]]:
        output = model(tokens, output_attentions=True)
        return output.logits, list(output.attentions)

    return run


def with_nnsight(shape: Shape) -> Pass:
    """Save the second output of every attention module."""
    from nnsight import NNsight, save

    model, tokens = NNsight(gpt2(shape, "eager")), tokens_of(shape)

    def run() -> tuple[Tensor, list[Tensor]]:
        with model.trace(tokens):
            weights = save([])
            for block in model.transformer.h:
                weights.append(block.attn.output[1])
            logits = save(model.output.logits)
        return logits, weights

    return run


def with_captum(shape: Shape) -> Pass:
    """Take the second output of every attention module."""
    from captum.attr import LayerActivation

    model, tokens = gpt2(shape, "eager"), tokens_of(shape)
    outputs: list[Tensor] = []

    def forward(tokens: Tensor) -> Tensor:
        outputs[:] = [model(tokens).logits]
        return outputs[0]

    activation = LayerActivation(forward, [block.attn for block in model.transformer.h])

    def run() -> tuple[Tensor, list[Tensor]]:
        weights = [output[1] for output in activation.attribute(tokens)]
        return outputs[0], weights

    return run


def with_transformer_lens(shape: Shape) -> Pass:
    """Wrap the modules of the model in a bridge, and take the patterns from its cache."""
    from transformer_lens.model_bridge.sources import build_bridge_from_module

    model, tokens = gpt2(shape, "eager"), tokens_of(shape)
    bridge = build_bridge_from_module(model, "GPT2LMHeadModel", hf_config=model.config).eval()

    def run() -> tuple[Tensor, list[Tensor]]:
        logits, cache = bridge.run_with_cache(
            tokens, names_filter=lambda name: name.endswith("hook_pattern")
        )
        return logits, [cache["pattern", layer] for layer in range(shape.layers)]

    return run


METHODS: dict[str, tuple[str | None, str, Callable[[Shape], Pass]]] = {
    "plain": (None, "as it is", plain),
    "regard": (None, "as it is", with_regard),
    "Hugging Face": (None, "switched to eager", with_hugging_face),
    "nnsight": ("nnsight", "switched to eager", with_nnsight),
    "captum": ("captum", "switched to eager", with_captum),
    "TransformerLens": ("transformer_lens", "modules replaced, eager", with_transformer_lens),
}
"""By name: the package it needs, what becomes of the model, and how to make a pass."""


def installed_methods() -> dict[str, tuple[str, Callable[[Shape], Pass]]]:
    """Return the methods whose package is installed."""
    return {
        name: (model, make)
        for name, (package, model, make) in METHODS.items()
        if package is None or find_spec(package)
    }


def make_warm_pass(make: Callable[[Shape], Pass], shape: Shape) -> Pass:
    """Return a pass after a small one has loaded what is loaded once."""
    make(Shape(tokens=8, layers=1, width=64))()
    return make(shape)


def measure_peaks(shape: Shape) -> list[float]:
    """Measure peaks in MiB in a process that returns freed memory to the system at once.

    Otherwise the peak depends on where the allocator puts tensors, and differs by 100 MiB between
    processes.
    """
    sizes = [f"--{name}={size}" for name, size in shape._asdict().items()]
    command = [sys.executable, __file__, "--peaks", *sizes]
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(peak) for peak in done.stdout.split()]


def measure(shape: Shape, rounds: int) -> list[str]:
    """Return the rows of the table."""
    methods = installed_methods()
    peaks = dict(zip(methods, measure_peaks(shape), strict=True))
    passes = {name: make(shape) for name, (_, make) in methods.items()}
    results = {name: run() for name, run in passes.items()}
    reference, weights = results["plain"][0], results["Hugging Face"][1]
    seconds: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(rounds):
        for name, run in passes.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    rows = []
    for name, (model, _) in methods.items():
        ratios = [a / b for a, b in zip(seconds[name], seconds["plain"], strict=True)]
        logits, captured = results[name]
        rows.append(
            f"| {name} | {model} | {median(ratios):.2f} | {min(seconds[name]):.2f} "
            f"| {peaks[name]:.0f} | {_difference(logits, reference)} "
            f"| {_largest_error(captured, weights)} |"
        )
    return rows


def _difference(logits: Tensor, reference: Tensor) -> str:
    if torch.equal(logits, reference):
        return "identical"
    return f"{(logits - reference).abs().max():.0e}"


def _largest_error(captured: list[Any], weights: list[Tensor]) -> str:
    if not captured:
        return ""
    pairs = zip(captured, weights, strict=True)
    return f"{max(float((one - other).abs().max()) for one, other in pairs):.0e}"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peaks", action="store_true", help="print the peaks only")
    options = parser.parse_args()
    torch.set_num_threads(1)
    shape = Shape(options.tokens, options.layers, options.width)
    if options.peaks:
        with torch.no_grad():
            passes = [
                partial(make_warm_pass, make, shape) for _, make in installed_methods().values()
            ]
            print(*(cost(build, seconds=0.0)[1] for build in passes))
        return
    print("| | model | CPU time, × plain | s | peak MiB | output | weights against eager |")
    print("|---|---|---|---|---|---|---|")
    with torch.no_grad():
        rows = measure(shape, options.rounds)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
