"""How good a run is on texts with known translations."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from regard.config import Data
from regard.errors import RegardError
from regard.run import Run
from regard.text import encoded
from regard.text.corpus import Pair, read
from regard.training import metrics
from regard.training.distributed import Crew
from regard.training.loop import validation_loss
from regard.training.objective import Objective
from regard.translate import translate


def report(
    run: Run, source: Path, reference: Path, alignments: Path | None, beams: int | None
) -> Iterator[str]:
    """Translate the sources, and tell line by line how the result compares."""
    pairs = list(read([source, reference], alignments))
    if not pairs:
        raise RegardError(f"{source} must have sentences, but it is empty")
    settings = run.settings.search
    settings = settings if beams is None else replace(settings, beams=beams)
    found = translate(run.model, run.tokenizers, [pair.source for pair in pairs], settings)
    texts, references = [best[0].text for best in found], [pair.target for pair in pairs]
    for score in metrics.scores(texts, references, zh=metrics.is_chinese(references)):
        interval = "" if score.interval is None else f" ± {score.interval:.2f}"
        yield f"{score.name} {score.value:.2f}{interval}  {score.signature}"
    yield f"exact match {metrics.exact_match(texts, references):.1%}"
    yield f"perplexity {metrics.perplexity(loss(run, pairs)):.3f} per piece"


def loss(run: Run, pairs: Sequence[Pair]) -> float:
    """Give the loss per piece of the references, empty ones left out."""
    everything = Data(longest=1 << 30, ratio=float("inf"))
    with TemporaryDirectory() as folder:
        some = encoded.encode(pairs, run.tokenizers, everything, Path(folder))
        if not len(some):
            raise RegardError("perplexity needs pairs with words on both sides, but there are none")
        return validation_loss(Objective(run.model), some, run.settings.train.tokens, Crew())
