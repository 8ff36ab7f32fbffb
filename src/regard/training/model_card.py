"""The model card of a run: its README.md, with data, settings, metrics and examples."""

import shlex
from collections.abc import Sequence

from regard._support.progress import format_duration
from regard._support.text import count, escape_control, escape_markdown
from regard.evaluation import bleu, exact_match, is_chinese, perplexity
from regard.runs import RunFolder
from regard.training.checkpoint_averaging import SelectedParameters
from regard.training.train_state import TrainState

MAX_EXAMPLES = 5

TEMPLATE = """\
# {name}

A translation model, trained with regard on {texts} ({pairs}).

| | |
|---|---|
| model | {kind}, {layers}, width {width} |
| trained | {steps}, {time}; {stop_reason} |
| parameters | {selection} |
| validation loss | {loss:.4f} per token (perplexity {perplexity:.2f}) |
| validation BLEU | {bleu:.2f} on {translated} |
| exact match | {exact:.1%} |

    regard translate {path} "a sentence"

All settings are in settings.json, all validations in log.jsonl.

## Examples from the validation pairs

| translation | reference |
|---|---|
"""


def model_card(
    folder: RunFolder,
    state: TrainState,
    selection: SelectedParameters,
    translations: Sequence[str],
    references: Sequence[str],
) -> str:
    """Return the model card as Markdown."""
    config, origin = folder.read_settings()
    card = TEMPLATE.format(
        name=escape_markdown(folder.path.resolve().name),
        path=escape_control(shlex.quote(str(folder.path))),
        texts=", ".join(map(escape_markdown, origin["texts"])),
        pairs=count(origin["pairs"], "pair"),
        kind=config.model.kind,
        layers=count(config.model.layers, "layer"),
        width=config.model.width,
        steps=count(state.step, "step"),
        time=format_duration(state.seconds),
        stop_reason=escape_markdown(state.stop_reason),
        selection=selection.name,
        loss=selection.result.loss,
        perplexity=perplexity(selection.result.loss),
        bleu=bleu(translations, references, chinese=is_chinese(references)),
        exact=exact_match(translations, references),
        translated=count(len(translations), "pair"),
    )
    examples = zip(translations[:MAX_EXAMPLES], references[:MAX_EXAMPLES], strict=True)
    return card + "".join(
        f"| {escape_markdown(text)} | {escape_markdown(ref)} |\n" for text, ref in examples
    )
