import numpy as np
import pytest
import torch

from regard.data import BOS
from regard.gallery import three_attentions
from regard.gallery.three_attentions import attention_weights, largest_change

pytestmark = pytest.mark.usefixtures("unchecked")

SOURCES = [[270, 280, 290, 300, 310], [275, 285]]
TARGETS = [[BOS, 320, 330, 340, 350, 360, 370], [BOS, 325, 335]]


def test_padding_and_future_get_exactly_zero_weight(translators):
    weights = attention_weights(translators["transformer"].model, SOURCES, TARGETS)
    for layers in weights:
        assert torch.cat([layer.sum(-1).flatten() for layer in layers]).allclose(torch.tensor(1.0))
    for encoder, decoder, cross in zip(*weights, strict=True):
        assert (encoder[1, :, :, 2:] == 0).all() and (encoder[1, :, :, :2] > 0).any()
        assert (cross[1, :, :, 2:] == 0).all() and (cross[0] > 0).all()
        assert (decoder.triu(1) == 0).all()


def test_padding_changes_no_weights(translators):
    model = translators["transformer"].model
    together = attention_weights(model, SOURCES, TARGETS)
    assert largest_change(together, attention_weights(model, SOURCES[1:], TARGETS[1:])) < 1e-5
    assert largest_change(together, attention_weights(model, [[276, 286]], TARGETS[1:])) > 1e-3


def test_hatched_cells_are_padding_or_future(small_transformer, monkeypatch):
    # a model that has learned little may say as much of both
    monkeypatch.setattr(three_attentions, "SENTENCES", ("The cat sits on the mat.", "A dog."))
    panels = three_attentions.draw()["three"].axes[:6]
    for number, axes in enumerate(panels):
        words = [label.get_text() for label in axes.get_xticklabels()]
        weights = np.asarray(axes.images[0].get_array())
        hidden = np.broadcast_to(np.array(words) == "<padding>", weights.shape)
        if number % 3 == 1:  # the decoder, where padding is always the future of what is read
            hidden = np.triu(np.ones_like(weights), 1) > 0
        assert ((weights == 0) == hidden).all()
        assert sum(bool(patch.get_hatch()) for patch in axes.patches) == hidden.sum()
    assert "<padding>" in [label.get_text() for label in panels[3].get_xticklabels()]


def test_titles_are_at_one_height_within_the_figure(small_transformer, monkeypatch):
    """The labels of the decoder's columns begin with `<start>`, which is longer than a word."""
    monkeypatch.setattr(three_attentions, "SENTENCES", ("A cat.", "A dog."))
    figure = three_attentions.draw()["three"]
    figure.draw_without_rendering()
    titles = [axes.title.get_window_extent() for axes in figure.axes[:3]]
    assert len({round(title.y0) for title in titles}) == 1
    assert max(title.y1 for title in titles) <= figure.bbox.y1
