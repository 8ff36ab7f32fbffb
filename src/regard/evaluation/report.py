"""How good a run is on texts with known translations."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from regard._support.progress import track
from regard.analysis import alignment_error_rate, best_alignment_head, extract_alignment
from regard.config import DataConfig
from regard.data import Pair, WordSpans, encode_pairs, read_pairs, whitespace_spans
from regard.decoding import translate
from regard.errors import RegardError
from regard.evaluation import metrics
from regard.runs import Run, trace_translation
from regard.training.distributed import Distributed
from regard.training.loop import validation_loss
from regard.training.objective import Objective


def evaluate(
    run: Run, source: Path, reference: Path, alignments: Path | None, beam_size: int | None
) -> Iterator[str]:
    """Translate the sources, and tell line by line how the result compares."""
    pairs = list(read_pairs([source, reference], alignments))
    if not pairs:
        raise RegardError(f"{source} must have sentences, but it is empty")
    settings = run.settings.search
    settings = settings if beam_size is None else replace(settings, beam_size=beam_size)
    sources = [pair.source for pair in pairs]
    found = translate(run.model, run.tokenizers, sources, settings, progress=True)
    texts, references = [best[0].text for best in found], [pair.target for pair in pairs]
    for score in metrics.corpus_scores(texts, references, chinese=metrics.is_chinese(references)):
        interval = "" if score.interval is None else f" ± {score.interval:.2f}"
        yield f"{score.name} {score.value:.2f}{interval}  {score.signature}"
    yield f"exact match {metrics.exact_match(texts, references):.1%}"
    yield f"perplexity {metrics.perplexity(loss(run, pairs)):.3f} per piece"
    if alignments is not None:
        yield alignment(run, pairs)


def alignment(run: Run, pairs: Sequence[Pair]) -> str:
    """Tell how far the head that agrees best with itself is from the given links.

    The head is chosen without them: a figure for text whose links are not known, too. Pairs with
    an empty side are left out.
    """
    pairs = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    traces, gold = [], []
    for pair in track(pairs, "sentences aligned", len(pairs)):
        words = _words(pair)
        traces.append(
            trace_translation(run.model, run.tokenizers, pair.source, pair.target, words=words)
        )
        gold.append(set(words.links or ()))
    layer, head, row, *_ = best_alignment_head(traces)
    found = [extract_alignment(trace, layer, head, row=row) for trace in traces]
    rate = alignment_error_rate(*(_numbered(links) for links in (found, gold)))
    return f"alignment error rate {rate:.3f} (cross-attention, layer {layer}, head {head})"


def _words(pair: Pair) -> WordSpans:
    source, target = (whitespace_spans(text) for text in pair[:2])
    links = [(source.index(left), target.index(right)) for left, right in pair.links]
    return WordSpans(source, target, links)


def _numbered(sentences: Sequence[set[tuple[int, int]]]) -> list[tuple[int, int, int]]:
    """Tell the links of all sentences apart, so that they count together."""
    return [(number, *link) for number, links in enumerate(sentences) for link in links]


def loss(run: Run, pairs: Sequence[Pair]) -> float:
    """Give the loss per piece of the references; empty ones, and too long ones, are left out."""
    room = run.model.max_length
    everything = DataConfig(
        max_length=10**9 if room is None else room - 1, max_length_ratio=float("inf")
    )
    with TemporaryDirectory() as folder:
        some = encode_pairs(pairs, run.tokenizers, everything, Path(folder))
        if not len(some):
            raise RegardError("perplexity needs pairs with words on both sides, but there are none")
        objective = Objective(run.model).eval()
        return validation_loss(objective, some, run.settings.train.batch_tokens, Distributed())
