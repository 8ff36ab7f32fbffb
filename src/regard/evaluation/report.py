"""Evaluation of a run on sources with reference translations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from regard._support.progress import track
from regard.analysis import best_alignment_head, extract_alignment
from regard.config import DataConfig
from regard.data import Pair, WordSpans, encode_pairs, read_pairs, whitespace_spans
from regard.decoding import translate
from regard.errors import RegardError
from regard.evaluation.likelihood import sum_nll, teacher_forced_nll
from regard.evaluation.metrics import (
    MetricScore,
    corpus_alignment_error_rate,
    corpus_scores,
    exact_match,
    is_chinese,
    perplexity,
)
from regard.runs import Run, trace_translation

UNLIMITED = 10**9


@dataclass(frozen=True, slots=True)
class AlignmentReport:
    """How well cross-attention agrees with gold word alignments."""

    error_rate: float
    layer: int
    head: int


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Metrics of a run on a test set."""

    bleu_score: MetricScore
    chrf_score: MetricScore
    exact_match: float  # fraction of translations that equal their reference
    perplexity: float  # of the references, per token
    alignment: AlignmentReport | None = None  # None without gold alignments

    @property
    def bleu(self) -> float:
        """Corpus BLEU, from 0 to 100."""
        return self.bleu_score.value

    @property
    def chrf(self) -> float:
        """Corpus chrF, from 0 to 100."""
        return self.chrf_score.value

    @property
    def alignment_error_rate(self) -> float | None:
        """Alignment error rate, from 0 to 1; None without gold alignments."""
        return None if self.alignment is None else self.alignment.error_rate

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        lines = []
        for score in (self.bleu_score, self.chrf_score):
            interval = "" if score.interval is None else f" ± {score.interval:.2f}"
            lines.append(f"{score.name} {score.value:.2f}{interval}  {score.signature}")
        lines.append(f"exact match {self.exact_match:.1%}")
        lines.append(f"perplexity {self.perplexity:.3f} per token")
        if self.alignment is not None:
            lines.append(
                f"alignment error rate {self.alignment.error_rate:.3f} (cross-attention, "
                f"layer {self.alignment.layer}, head {self.alignment.head})"
            )
        return lines


def evaluate(
    run: Run,
    source: str | PathLike[str],
    reference: str | PathLike[str],
    alignments: str | PathLike[str] | None = None,
    beam_size: int | None = None,
) -> EvaluationReport:
    """Translate a test set, and compare the result with its references.

    Args:
        run: a trained run.
        source: file of sentences, one a line.
        reference: file of their translations.
        alignments: file of gold word alignments (`0-0 1-2`), for the alignment error rate.
        beam_size: instead of the run's own.

    Raises:
        RegardError: the files are empty or do not match.

    Example:
        ```python
        report = evaluate(regard.load("run"), "test.en", "test.fr")
        print(report.bleu, report.perplexity)
        ```
    """
    links = None if alignments is None else Path(alignments)
    pairs = list(read_pairs([Path(source), Path(reference)], links))
    if not pairs:
        raise RegardError(f"{source} must have sentences, but it is empty")
    config = run.settings.search
    config = config if beam_size is None else replace(config, beam_size=beam_size)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    results = translate(run.model, run.tokenizers, sources, config, progress=True)
    translations = [best[0].text for best in results]
    bleu_score, chrf_score = corpus_scores(translations, references, chinese=is_chinese(references))
    return EvaluationReport(
        bleu_score=bleu_score,
        chrf_score=chrf_score,
        exact_match=exact_match(translations, references),
        perplexity=perplexity(reference_loss(run, pairs)),
        alignment=None if links is None else evaluate_alignment(run, pairs),
    )


def reference_loss(run: Run, pairs: Sequence[Pair]) -> float:
    """Return the negative log-likelihood per token of the references.

    Pairs with an empty side, or with more tokens than the model has positions, are left out.
    """
    max_length = run.model.max_length
    config = DataConfig(
        max_length=UNLIMITED if max_length is None else max_length - 1, max_length_ratio=inf
    )
    with TemporaryDirectory() as folder:
        encoded = encode_pairs(pairs, run.tokenizers, config, Path(folder))
        if not len(encoded):
            raise RegardError("perplexity needs pairs with words on both sides, but there are none")
        batch_nll = partial(teacher_forced_nll, run.model)
        nll, tokens = sum_nll(batch_nll, encoded, run.settings.train.batch_tokens)
    return nll / tokens


def evaluate_alignment(run: Run, pairs: Sequence[Pair]) -> AlignmentReport:
    """Compare the alignment of the best cross-attention head with gold links.

    The head is chosen without them, by its agreement with itself in both directions, as one would
    for text without gold links. Pairs with an empty side are left out.
    """
    pairs = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    traces, gold = [], []
    for pair in track(pairs, "sentences aligned", len(pairs)):
        words = _word_spans(pair)
        traces.append(
            trace_translation(run.model, run.tokenizers, pair.source, pair.target, words=words)
        )
        gold.append(set(words.links or ()))
    best = best_alignment_head(traces)
    predicted = [extract_alignment(trace, best.layer, best.head, row=best.row) for trace in traces]
    return AlignmentReport(corpus_alignment_error_rate(predicted, gold), best.layer, best.head)


def _word_spans(pair: Pair) -> WordSpans:
    source, target = whitespace_spans(pair.source), whitespace_spans(pair.target)
    links = [(source.index(left), target.index(right)) for left, right in pair.links]
    return WordSpans(source, target, links)
