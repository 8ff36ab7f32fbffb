"""A corpus of any size is learned in the memory of a small one."""

import random
import subprocess
import sys

import pytest

from helpers.tiny_corpus import NOUNS, TRICKS, VERBS
from regard.data import EncodedPairs
from regard.runs import RunFolder

SMALL_MODEL = (
    "data.vocab_size=500",
    "model.layers=1",
    "model.width=16",
    "model.ffn_width=16",
    "model.heads=1",
    "train.steps=3",
    "train.validate_every=3",
)
MEASURED = """
import resource, sys
from regard.cli.commands import app
try:
    app()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stdout)
"""


def write(path, count):
    """Write pairs of about ten words, with numbers that make them distinct."""
    chance = random.Random(0)
    english, french = ([*NOUNS, *VERBS, *TRICKS], [*NOUNS.values(), *VERBS.values()])
    with path.open("w") as file:
        for number in range(count):
            source, target = chance.choices(english, k=9), chance.choices(french, k=9)
            file.write(f"{' '.join(source)} {number}\t{' '.join(target)} {number}\n")
    return path


def peak(tmp_path, count):
    """Train on so many pairs in a process of its own; give its peak memory in MiB."""
    out = tmp_path / f"run-{count}"
    pairs = write(tmp_path / f"{count}.tsv", count)
    sets = [word for change in SMALL_MODEL for word in ("--set", change)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "train", str(pairs), "--out", str(out), *sets],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    learned = EncodedPairs.load(RunFolder(out).data / "train")
    assert len(learned) == count - 1000  # those held out
    return int(done.stdout.split()[-1]) / 1024


@pytest.mark.slow
def test_ten_times_the_pairs_take_hardly_more_memory(tmp_path):
    small, large = peak(tmp_path, 100_000), peak(tmp_path, 1_000_000)
    # what grows is where each sentence starts and how long it is: some numbers a pair
    assert large - small < 250, f"{small:.0f} MiB for 100,000 pairs, {large:.0f} for 1,000,000"
