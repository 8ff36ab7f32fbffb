"""The card of a run: what it is and how good, for a person who finds the folder."""

from collections.abc import Sequence

from regard._support.progress import format_duration
from regard.config import RunConfig
from regard.evaluation import metrics
from regard.runs import RunFolder
from regard.training.state import Progress

SHOWN = 5  # translations on the card

CARD = """\
# {name}

A translator, trained with regard on {texts} ({pairs:,} pairs).

| | |
|---|---|
| model | {kind}, {layers} layers, width {width} |
| trained | {steps:,} steps, {time}; ended: {finished} |
| weights | {chosen} |
| validation loss | {loss:.4f} per token (perplexity {perplexity:.2f}) |
| validation BLEU | {bleu:.2f} |
| exact match | {exact:.1%} |

    regard translate {path} "a sentence"

Every setting is in settings.json, and every validation in log.jsonl.

## From the validation pairs

| translation | reference |
|---|---|
"""


def card(
    folder: RunFolder,
    settings: RunConfig,
    progress: Progress,
    chosen: str,
    loss: float,
    texts: Sequence[str],
    references: Sequence[str],
) -> str:
    """Write the card."""
    _, origin = folder.read_settings()
    head = CARD.format(
        name=folder.path.resolve().name,
        path=folder.path,
        texts=", ".join(origin["texts"]),
        pairs=origin["pairs"],
        kind=settings.model.kind,
        layers=settings.model.layers,
        width=settings.model.width,
        steps=progress.step,
        time=format_duration(progress.seconds),
        finished=progress.finished,
        chosen=chosen,
        loss=loss,
        perplexity=metrics.perplexity(loss),
        bleu=metrics.bleu(texts, references, chinese=metrics.is_chinese(references)),
        exact=metrics.exact_match(texts, references),
    )
    rows = zip(texts[:SHOWN], references[:SHOWN], strict=True)
    return head + "".join(f"| {_cell(text)} | {_cell(wanted)} |\n" for text, wanted in rows)


def _cell(text: str) -> str:
    """Keep a text from ending its cell, or from being markup."""
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, f"\\{sign}")
    return text
