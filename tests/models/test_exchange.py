import pytest
import torch
from torch import nn

from regard.models.exchange import from_torch

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def test_settings_are_taken_over():
    theirs = nn.Transformer(
        12, 3, 2, 1, 20, 0.25, "gelu", layer_norm_eps=1e-3, norm_first=True
    ).eval()
    encoder, decoder = from_torch(theirs)
    assert (len(encoder.layers), len(decoder.layers)) == (2, 1)
    layer = decoder.layers[0]
    assert layer.around_cross.dropout == layer.attention.dropout == 0.25
    assert layer.around_cross.norm.eps == 1e-3
    assert layer.feed_forward.activation == "gelu"
    assert not layer.training


def test_an_activation_that_is_not_known_is_refused():
    theirs = nn.Transformer(12, 3, 1, 1, 20, activation=torch.tanh)
    with pytest.raises(ValueError, match="activation must be relu or gelu"):
        from_torch(theirs)
