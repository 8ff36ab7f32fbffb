"""The Transformer's three attentions in a padded batch: padding and the future are hidden."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.data import BOS, PAD, SPECIAL_TOKENS, pad_sequences
from regard.decoding import translate
from regard.demo.models import load_or_train
from regard.gallery.word_map import word_map
from regard.models import AttentionWeights, Seq2SeqModel
from regard.viz.heatmap import new_figure, set_titles

SENTENCES = ("The cat sits on the mat.", "The dog sleeps.")
TITLES = {
    "encoder": "encoder: English looks at English",
    "decoder": "decoder: French looks back at French",
    "cross": "cross: French looks at English",
}


def draw() -> dict[str, Figure]:
    """Draw where two sentences look that were translated together, the second one padded."""
    run = load_or_train(to="fr")
    found = translate(run.model, run.tokenizers, SENTENCES, run.settings.search)
    sources = run.tokenizers.source.encode_batch(SENTENCES)
    targets = [[BOS, *best[0].tokens] for best in found]
    together = look(run.model, sources, targets)
    alone = look(run.model, sources[1:], targets[1:])
    english, french = (
        [
            [piece.strip() for piece in tokenizer.convert_ids_to_tokens(row)]
            for row in pad_sequences(rows)[0].tolist()
        ]
        for tokenizer, rows in zip(run.tokenizers, (sources, targets), strict=True)
    )
    figure = _maps(together, english, french)
    changed = difference(together, alone)
    set_titles(figure, None, f"padding changes no weight by more than {changed:.0e}")
    return {"three": figure}


@torch.inference_mode()
def look(
    model: Seq2SeqModel, sources: Sequence[list[int]], targets: Sequence[list[int]]
) -> AttentionWeights:
    """Pad sentences to a batch, and tell where every layer and head looks in it."""
    _, looks = model.forward_with_weights(*pad_sequences(sources), pad_sequences(targets)[0])
    return looks


def difference(together: AttentionWeights, alone: AttentionWeights) -> float:
    """Tell how far the last sentence's looks are from those that it has without padding."""
    most = 0.0
    for batched, single in zip(sum(together, ()), sum(alone, ()), strict=True):
        queries, keys = single.shape[2:]
        change = batched[-1:, :, :queries, :keys] - single
        most = max(most, float(change.abs().max()))
    return most


def _maps(looks: AttentionWeights, english: list[list[str]], french: list[list[str]]) -> Figure:
    """Draw a row of maps for each sentence: the means over the heads of the last layer."""
    figure = new_figure(12.5, 8)
    panels = figure.subplots(len(english), len(TITLES))
    for sentence, row in enumerate(panels):
        source, target = english[sentence], french[sentence]
        words = [(source, source), (target, target), (target, source)]
        for axes, (name, title), (queries, keys) in zip(row, TITLES.items(), words, strict=True):
            weights = getattr(looks, name)[-1][sentence].mean(dim=0)
            image = word_map(axes, weights, queries, keys, title="" if sentence else title)
            _fade_padding(axes, queries)
    figure.colorbar(image, ax=panels, label="weight", shrink=0.5)
    return figure


def _fade_padding(axes: Axes, queries: Sequence[str]) -> None:
    """Rows of padding look, too, but nobody reads what they gather."""
    real = sum(word != SPECIAL_TOKENS[PAD] for word in queries)
    axes.axhspan(real - 0.5, len(queries) - 0.5, color="white", alpha=0.65, linewidth=0)
