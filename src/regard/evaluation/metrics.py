"""Corpus metrics: BLEU and chrF with signatures, exact match, perplexity, alignment error rate."""

from collections.abc import Sequence
from math import exp
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.analysis import Link, alignment_error_rate
from regard.errors import RegardError

BOOTSTRAP_SAMPLES = 1000
MAX_LOSS = 700.0  # exp overflows soon after it
LANGUAGE_SAMPLE = 1000  # texts that `is_chinese` looks at


class MetricScore(NamedTuple):
    """A corpus score, its 95 % confidence interval, and sacreBLEU's signature."""

    name: str
    value: float
    interval: float | None  # half its width; None without bootstrap resampling
    signature: str


def bleu(translations: Sequence[str], references: Sequence[str], *, chinese: bool = False) -> float:
    """Return the corpus BLEU by sacreBLEU, from 0 to 100.

    Args:
        translations: one text per reference.
        references: one reference per text.
        chinese: tokenize character by character, instead of by sacreBLEU's `13a`.

    Raises:
        RegardError: if there are no texts, or not equally many on both sides.

    Example:
        >>> round(bleu(["the cat sat on the mat"], ["the cat sat on the mat"]))
        100
    """
    _check_texts(translations, references)
    metric = BLEU(tokenize="zh" if chinese else "13a")
    return float(metric.corpus_score(list(translations), [list(references)]).score)


def corpus_scores(
    translations: Sequence[str],
    references: Sequence[str],
    *,
    chinese: bool = False,
    samples: int = BOOTSTRAP_SAMPLES,
) -> tuple[MetricScore, MetricScore]:
    """Return BLEU and chrF with signatures and bootstrap confidence intervals.

    Args:
        translations: one text per reference.
        references: one reference per text.
        chinese: tokenize character by character for BLEU.
        samples: bootstrap resamples for the intervals; 1 gives none.

    Raises:
        RegardError: if there are no texts, or not equally many on both sides.

    Example:
        >>> texts = ["the cat sat on the mat", "the dog"]
        >>> bleu_score, chrf_score = corpus_scores(texts, texts, samples=1)
        >>> round(bleu_score.value), bleu_score.interval, round(chrf_score.value)
        (100, None, 100)
    """
    _check_texts(translations, references)
    texts, references = list(translations), list(references)
    bleu_metric = BLEU(tokenize="zh" if chinese else "13a")
    return (
        _score("BLEU", bleu_metric, texts, references, samples),
        _score("chrF", CHRF(), texts, references, samples),
    )


def _check_counts(translations: Sequence[str], references: Sequence[str]) -> None:
    if len(translations) != len(references):
        raise RegardError(
            f"there must be a reference for each translation, but there are {len(references)} "
            f"for {len(translations)}"
        )


def _check_texts(translations: Sequence[str], references: Sequence[str]) -> None:
    _check_counts(translations, references)
    if not len(translations):
        raise RegardError("there must be a translation to score, but there is none")


def _score(
    name: str, metric: BLEU | CHRF, texts: list[str], references: list[str], samples: int
) -> MetricScore:
    result, interval = _bootstrap(metric, texts, references, samples)
    return MetricScore(name, result.score, interval, str(metric.get_signature()))


def _bootstrap(
    metric: BLEU | CHRF, texts: list[str], references: list[str], samples: int
) -> tuple[Any, float | None]:
    """Return the score and half the width of its confidence interval, if there is one."""
    if samples > 1:
        try:
            result = metric.corpus_score(texts, [references], n_bootstrap=samples)
            return result, float(result._ci)
        except TypeError:  # raised by sacreBLEU if a resample shares no n-gram with its references
            pass
    return metric.corpus_score(texts, [references]), None


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """Return the fraction of translations that equal their reference; 0 if there is none.

    Raises:
        RegardError: if there are not equally many on both sides.

    Example:
        >>> exact_match(["a b", "a"], ["a b", "b"])
        0.5
    """
    _check_counts(translations, references)
    pairs = zip(translations, references, strict=True)
    return sum(text == reference for text, reference in pairs) / max(len(references), 1)


def perplexity(loss: float) -> float:
    """Return exp of a loss per token; a loss that would overflow is capped.

    Example:
        >>> perplexity(0.0)
        1.0
    """
    return exp(min(loss, MAX_LOSS))


def corpus_alignment_error_rate(predicted: Sequence[set[Link]], gold: Sequence[set[Link]]) -> float:
    """Return the alignment error rate over the links of all sentences together.

    Args:
        predicted: links (source word, target word) of each sentence.
        gold: sure links of each sentence.

    Example:
        >>> corpus_alignment_error_rate([{(0, 0)}, {(0, 1)}], [{(0, 0)}, {(0, 0)}])
        0.5
    """
    return alignment_error_rate(_number_sentences(predicted), _number_sentences(gold))


def _number_sentences(sentences: Sequence[set[Link]]) -> list[tuple[int, ...]]:
    return [(index, *link) for index, links in enumerate(sentences) for link in links]


def is_chinese(texts: Sequence[str]) -> bool:
    """Return whether most letters are Han characters, which BLEU must tokenize one by one.

    Example:
        >>> is_chinese(["猫在睡觉。"]), is_chinese(["The cat sleeps."])
        (True, False)
    """
    letters = [letter for text in texts[:LANGUAGE_SAMPLE] for letter in text if letter.isalpha()]
    han = sum("\u4e00" <= letter <= "\u9fff" for letter in letters)
    return 2 * han > len(letters)
