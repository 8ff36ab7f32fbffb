"""Quality of the demo over seeds: BLEU on the phrasebook's test set, for RESULTS.md.

    python bench/demo_seeds.py [--out FOLDER] [--seeds 10] [--to fr] [--model transformer]
    python bench/demo_seeds.py --smoke

Each seed trains the demo's fixed number of steps in a folder of its own. Finished seeds are not
trained again and interrupted ones are resumed, so the command can be stopped and repeated. --smoke
takes seconds: two seeds of a few steps.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from regard.data.phrasebook import Language, Phrasebook, load_phrasebook
from regard.demo import train_demo
from regard.demo.models import LANGUAGES, MODELS
from regard.evaluation import bleu, exact_match, is_chinese
from regard.runs import Run, RunFolder

GOAL = 90.0  # BLEU of every seed
SMOKE_STEPS, SMOKE_PAIRS = 3, 10


def main() -> None:
    """Train and evaluate the seeds, and print a row for each as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-seeds"), help="folder of the runs")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--to", choices=LANGUAGES, default="fr")
    parser.add_argument("--model", choices=MODELS, default="transformer")
    parser.add_argument("--steps", type=int, help="instead of the demo's own")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.smoke:
            options.out, options.seeds, options.steps = Path(folder), 2, SMOKE_STEPS
        for line in table(options):
            print(line, flush=True)


def table(options: argparse.Namespace) -> Iterator[str]:
    """Yield the rows of a Markdown table, and the lowest BLEU."""
    language = cast(Language, options.to)
    book = load_phrasebook(language)
    if options.smoke:
        book = load_phrasebook(language, train=200, valid=SMOKE_PAIRS, test=SMOKE_PAIRS)
    yield "| model | to | seed | steps | BLEU | exact match | training seconds |"
    yield "|---|---|---|---|---|---|---|"
    scores = []
    for seed in range(options.first, options.first + options.seeds):
        out = options.out / f"{options.to}-{options.model}-{seed}"
        run = train_demo(out, options.to, options.model, steps=options.steps, seed=seed, book=book)
        score, exact = evaluate(run, book)
        scores.append(score)
        yield (
            f"| {options.model} | {options.to} | {seed} | {run.settings.train.steps} "
            f"| {score:.1f} | {100 * exact:.0f} % | {training_seconds(run.folder):.0f} |"
        )
    verdict = "reached" if min(scores) >= GOAL else "missed"
    yield f"\nLowest BLEU {min(scores):.1f}; goal of {GOAL:g} in every seed: {verdict}."


def evaluate(run: Run, book: Phrasebook) -> tuple[float, float]:
    """Return BLEU and the share of exact matches on the test set."""
    references = [pair.target for pair in book.test]
    texts = [one.text for one in run.translate([pair.source for pair in book.test])]
    return bleu(texts, references, chinese=is_chinese(references)), exact_match(texts, references)


def training_seconds(folder: RunFolder) -> float:
    """Return the seconds of training that the log records."""
    return float(folder.read_log()[-1]["seconds"])


if __name__ == "__main__":
    main()
