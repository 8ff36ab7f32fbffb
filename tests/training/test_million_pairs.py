"""Memory does not grow with the corpus."""

import random
import subprocess
import sys

import pytest

from helpers.tiny_corpus import ADJECTIVES, NOUNS, VERBS
from regard.data import EncodedPairs
from regard.runs import RunFolder

SETTINGS = (
    "data.vocab_size=500",
    "model.layers=1",
    "model.width=16",
    "model.ffn_width=16",
    "model.heads=1",
    "train.steps=3",
    "train.validate_every=3",
)
PRINT_PEAK_MEMORY = """
import resource, sys
from regard.cli import app
try:
    app()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stdout)
"""


def write_pairs(path, count):
    """Write pairs of about ten words, with numbers that make them distinct."""
    rng = random.Random(0)
    english, french = [*NOUNS, *VERBS, *ADJECTIVES], [*NOUNS.values(), *VERBS.values()]
    with path.open("w") as file:
        for number in range(count):
            source, target = rng.choices(english, k=9), rng.choices(french, k=9)
            file.write(f"{' '.join(source)} {number}\t{' '.join(target)} {number}\n")
    return path


def peak_memory_mib(tmp_path, count):
    """Train on `count` pairs in a process of its own; return its peak memory."""
    out = tmp_path / f"run-{count}"
    pairs = write_pairs(tmp_path / f"{count}.tsv", count)
    options = [word for setting in SETTINGS for word in ("--set", setting)]
    done = subprocess.run(
        [sys.executable, "-c", PRINT_PEAK_MEMORY, "train", str(pairs), "--out", str(out), *options],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    held_out = 1000
    assert len(EncodedPairs.load(RunFolder(out).data / "train")) == count - held_out
    return int(done.stdout.split()[-1]) / 1024


@pytest.mark.slow
def test_ten_times_the_pairs_need_hardly_more_memory(tmp_path):
    small, large = peak_memory_mib(tmp_path, 100_000), peak_memory_mib(tmp_path, 1_000_000)
    # what grows are the offsets and lengths of the sentences: a few integers per pair
    assert large - small < 250, f"{small:.0f} MiB for 100,000 pairs, {large:.0f} for 1,000,000"
