"""The report of an evaluation: metrics of translations, printed as a table."""

from dataclasses import asdict, dataclass
from typing import Any

from regard.evaluation.metrics import MetricScore


@dataclass(frozen=True, slots=True)
class AlignmentReport:
    """How well cross-attention agrees with gold word alignments.

    Attributes:
        error_rate: alignment error rate, from 0 to 1; lower is better.
        layer: decoder layer of the head that was evaluated.
        head: number of the head in that layer.
    """

    error_rate: float
    layer: int
    head: int


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Metrics of translations of a test set; `print(report)` shows them as a table.

    Attributes:
        bleu_score: BLEU with its confidence interval and signature.
        chrf_score: chrF with its confidence interval and signature.
        exact_match: fraction of translations that equal their reference.
        perplexity: of the references, per token.
        alignment: agreement with gold alignments; None without them.

    Example:
        >>> bleu = MetricScore("BLEU", 41.5, 1.25, "nrefs:1")
        >>> chrf = MetricScore("chrF", 62.0, None, "nrefs:1")
        >>> report = EvaluationReport(bleu, chrf, exact_match=0.25, perplexity=3.5)
        >>> print(report)
        BLEU         41.50 ± 1.25  nrefs:1
        chrF         62.00         nrefs:1
        exact match  25.0 %
        perplexity   3.500         per token
        >>> report.bleu, report.to_dict()["chrf"]["value"]
        (41.5, 62.0)
    """

    bleu_score: MetricScore
    chrf_score: MetricScore
    exact_match: float
    perplexity: float
    alignment: AlignmentReport | None = None

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

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics as a JSON-serializable dict.

        Returns:
            "bleu" and "chrf" with name, value, interval and signature; "exact_match", "perplexity",
            and "alignment", which is None without gold alignments.

        Example:
            >>> bleu = MetricScore("BLEU", 41.5, 1.25, "nrefs:1")
            >>> chrf = MetricScore("chrF", 62.0, None, "nrefs:1")
            >>> EvaluationReport(bleu, chrf, exact_match=0.25, perplexity=3.5).to_dict()["bleu"]
            {'name': 'BLEU', 'value': 41.5, 'interval': 1.25, 'signature': 'nrefs:1'}
        """
        return {
            "bleu": self.bleu_score._asdict(),
            "chrf": self.chrf_score._asdict(),
            "exact_match": self.exact_match,
            "perplexity": self.perplexity,
            "alignment": None if self.alignment is None else asdict(self.alignment),
        }

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # the table, at the end of a cell of a notebook

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        lines = (f"{name:{widths[0]}}  {value:{widths[1]}}  {about}" for name, value, about in rows)
        return "\n".join(line.rstrip() for line in lines)

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return name, value and a remark of each metric."""
        rows = []
        for score in (self.bleu_score, self.chrf_score):
            interval = "" if score.interval is None else f" ± {score.interval:.2f}"
            rows.append((score.name, f"{score.value:.2f}{interval}", score.signature))
        rows.append(("exact match", f"{self.exact_match:.1%}".replace("%", " %"), ""))
        rows.append(("perplexity", f"{self.perplexity:.3f}", "per token"))
        if self.alignment is not None:
            head = f"cross-attention, layer {self.alignment.layer}, head {self.alignment.head}"
            rows.append(("alignment error rate", f"{self.alignment.error_rate:.3f}", head))
        return rows
