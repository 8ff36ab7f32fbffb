import pytest
import torch
from torch import nn

from regard.models.convert import from_torch

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


@pytest.mark.parametrize("bias", [True, False])
def test_precision_and_missing_biases_are_taken_over(bias):
    theirs = nn.Transformer(12, 3, 2, 2, 20, batch_first=True, bias=bias).double().eval()
    for weight in theirs.parameters():
        nn.init.normal_(weight, std=0.3)
    encoder, decoder = from_torch(theirs)
    source, target = torch.randn(2, 7, 12).double(), torch.randn(2, 5, 12).double()
    causal = nn.Transformer.generate_square_subsequent_mask(5).bool()
    wanted = theirs(source, target, tgt_mask=causal)
    keep = torch.ones(2, 7, dtype=torch.bool)
    got = decoder(target, decoder.read(encoder(source), keep))
    torch.testing.assert_close(got, wanted)


def test_what_was_taken_over_is_a_copy():
    theirs = nn.Transformer(12, 3, 1, 1, 20)
    own = {weight.data_ptr() for weight in theirs.parameters()}
    for part in from_torch(theirs):
        assert not own & {weight.data_ptr() for weight in part.parameters()}
