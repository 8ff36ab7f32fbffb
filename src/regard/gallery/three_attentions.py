"""The Transformer's three attentions in a padded batch: padding and the future are masked."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.data import BOS, EOS, PAD, SPECIAL_TOKENS, Tokenizer, pad_sequences
from regard.demo import load_or_train
from regard.gallery.plots import word_heatmap
from regard.models import AttentionWeights, Seq2SeqModel
from regard.viz import QUERY_KEY, WRITING_READING, new_figure, set_titles

SENTENCES = ("The cat sits on the mat.", "The dog sleeps.")
TITLES = {
    "encoder": "encoder: English attends to English",
    "decoder": "decoder: French attends to earlier French",
    "cross": "cross: French attends to English",
}


def draw() -> dict[str, Figure]:
    """Draw the attention of two sentences translated in one batch, the second one padded."""
    run = load_or_train(to="fr")
    translations = run.translate(SENTENCES)
    sources = run.tokenizers.source.encode_batch(SENTENCES)
    targets = [[BOS, *translation.tokens] for translation in translations]
    outputs = [[*translation.tokens, EOS] for translation in translations]
    together = attention_weights(run.model, sources, targets)
    alone = attention_weights(run.model, sources[1:], targets[1:])
    english = _pieces(run.tokenizers.source, sources)
    read, written = (_pieces(run.tokenizers.target, rows) for rows in (targets, outputs))
    figure = _maps(together, english, read, written)
    change = largest_change(together, alone)
    set_titles(figure, None, f"padding changes no weight by more than {change:.0e}")
    return {"three": figure}


def _pieces(tokenizer: Tokenizer, sequences: Sequence[list[int]]) -> list[list[str]]:
    """Return the tokens of each row of a padded batch."""
    rows = pad_sequences(sequences)[0].tolist()
    return [[piece.strip() for piece in tokenizer.convert_ids_to_tokens(row)] for row in rows]


@torch.inference_mode()
def attention_weights(
    model: Seq2SeqModel, sources: Sequence[list[int]], targets: Sequence[list[int]]
) -> AttentionWeights:
    """Return the attention weights of every layer and head for a padded batch."""
    _, weights = model.forward_with_weights(*pad_sequences(sources), pad_sequences(targets)[0])
    return weights


def largest_change(together: AttentionWeights, alone: AttentionWeights) -> float:
    """Return the largest change of the last sentence's weights that padding causes."""
    largest = 0.0
    for batched, single in zip(sum(together, ()), sum(alone, ()), strict=True):
        queries, keys = single.shape[2:]
        change = batched[-1:, :, :queries, :keys] - single
        largest = max(largest, float(change.abs().max()))
    return largest


def _maps(
    weights: AttentionWeights,
    english: list[list[str]],
    read: list[list[str]],
    written: list[list[str]],
) -> Figure:
    """Draw a row of maps per sentence: the last layer, averaged over heads.

    The decoder attends between the French words that it reads; rows of cross-attention are named by
    the words that it writes.
    """
    figure = new_figure(12.5, 8)
    panels = figure.subplots(len(english), len(TITLES))
    for sentence, row in enumerate(panels):
        source, target = english[sentence], read[sentence]
        words = [(source, source), (target, target), (written[sentence], source)]
        for axes, (name, title), (queries, keys) in zip(row, TITLES.items(), words, strict=True):
            mean = getattr(weights, name)[-1][sentence].mean(dim=0)
            image = word_heatmap(
                axes,
                mean,
                queries,
                keys,
                title="" if sentence else title,
                axis_titles=WRITING_READING if name == "cross" else QUERY_KEY,
            )
            _fade_padding(axes, queries)
    figure.align_titles(panels[0])  # above token labels of different lengths
    figure.colorbar(image, ax=panels, label="weight", shrink=0.5)
    return figure


def _fade_padding(axes: Axes, queries: Sequence[str]) -> None:
    """Fade rows of padding, whose context is never used."""
    real = sum(word != SPECIAL_TOKENS[PAD] for word in queries)
    axes.axhspan(real - 0.5, len(queries) - 0.5, color="white", alpha=0.65, linewidth=0)
