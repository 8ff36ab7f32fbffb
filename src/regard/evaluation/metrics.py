"""How good translations are: BLEU and chrF with their signatures, exact match, perplexity."""

from collections.abc import Sequence
from math import exp
from typing import Any, NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.errors import RegardError


class MetricScore(NamedTuple):
    """A figure, its interval at 95 %, and the signature that makes it comparable."""

    name: str
    value: float
    interval: float | None
    signature: str


def bleu(texts: Sequence[str], references: Sequence[str], *, chinese: bool = False) -> float:
    """Give the BLEU of a corpus, as sacreBLEU computes it."""
    metric = BLEU(tokenize="zh" if chinese else "13a")
    return float(metric.corpus_score(list(texts), [list(references)]).score)


def corpus_scores(
    texts: Sequence[str], references: Sequence[str], *, chinese: bool = False, samples: int = 1000
) -> list[MetricScore]:
    """Give BLEU and chrF with signatures and, from resampled corpora, intervals."""
    if len(texts) != len(references):
        raise RegardError(
            f"there must be a reference for each text, but there are {len(references)} "
            f"for {len(texts)}"
        )
    kept, references = list(texts), list(references)
    found = []
    for name, metric in (("BLEU", BLEU(tokenize="zh" if chinese else "13a")), ("chrF", CHRF())):
        result, interval = _resampled(metric, kept, references, samples)
        signature = str(metric.get_signature())
        found.append(MetricScore(name, result.score, interval, signature))
    return found


def _resampled(
    metric: BLEU | CHRF, texts: list[str], references: list[str], samples: int
) -> tuple[Any, float | None]:
    """MetricScore a corpus, with the interval where there is one."""
    if samples > 1:
        try:
            result = metric.corpus_score(texts, [references], n_bootstrap=samples)
            return result, float(result._ci)
        except TypeError:  # sacreBLEU cannot resample where some samples share nothing at all
            pass
    return metric.corpus_score(texts, [references]), None


def exact_match(texts: Sequence[str], references: Sequence[str]) -> float:
    """Give the share of texts that equal their reference."""
    return sum(a == b for a, b in zip(texts, references, strict=True)) / max(len(references), 1)


def perplexity(loss: float) -> float:
    """Turn a loss per token into the number of tokens the model wavers between."""
    return exp(min(loss, 700.0))


def is_chinese(texts: Sequence[str]) -> bool:
    """Say whether most letters are Han characters, which BLEU must part one by one."""
    letters = [letter for text in texts[:1000] for letter in text if letter.isalpha()]
    han = sum("\u4e00" <= letter <= "\u9fff" for letter in letters)
    return 2 * han > len(letters)
