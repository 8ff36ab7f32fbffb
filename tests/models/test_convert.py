"""Conversion of torch's own Transformer."""

import pytest
import torch
from torch import nn

from regard import RegardError
from regard.masks import padding
from regard.models import from_torch

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

WIDTH, LENGTHS = 24, torch.tensor([7, 3, 5])


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("pre_norm", [True, False])
def test_converted_model_gives_torchs_outputs(pre_norm, activation):
    theirs = nn.Transformer(
        WIDTH, 6, 2, 3, 20, 0.1, activation, norm_first=pre_norm, batch_first=True
    ).eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    encoder, decoder = from_torch(theirs)
    source, target = torch.randn(3, 7, WIDTH), torch.randn(3, 5, WIDTH)
    mask = torch.arange(7) < LENGTHS[:, None]
    expected = theirs(
        source,
        target,
        tgt_mask=~torch.ones(5, 5, dtype=torch.bool).tril(),
        src_key_padding_mask=~mask,
        memory_key_padding_mask=~mask,
    )
    states = encoder(source, padding(mask))
    ours = decoder(target, decoder.project_source(states, mask))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)


def test_hyperparameters_are_copied():
    theirs = nn.Transformer(
        12, 3, 2, 1, 20, 0.25, "gelu", layer_norm_eps=1e-3, norm_first=True
    ).eval()
    encoder, decoder = from_torch(theirs)
    assert (len(encoder.layers), len(decoder.layers)) == (2, 1)
    layer = decoder.layers[0]
    assert layer.cross_residual.dropout == layer.attention.dropout == 0.25
    assert layer.cross_residual.norm.eps == 1e-3
    assert layer.feed_forward.activation == "gelu"
    assert not layer.training


def test_unknown_activation_is_refused():
    theirs = nn.Transformer(12, 3, 1, 1, 20, activation=torch.tanh)
    with pytest.raises(RegardError, match="activation must be relu or gelu"):
        from_torch(theirs)


@pytest.mark.parametrize("bias", [True, False])
def test_precision_and_missing_biases_are_copied(bias):
    theirs = nn.Transformer(12, 3, 2, 2, 20, batch_first=True, bias=bias).double().eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    encoder, decoder = from_torch(theirs)
    source, target = torch.randn(2, 7, 12).double(), torch.randn(2, 5, 12).double()
    causal = nn.Transformer.generate_square_subsequent_mask(5).bool()
    expected = theirs(source, target, tgt_mask=causal)
    mask = torch.ones(2, 7, dtype=torch.bool)
    ours = decoder(target, decoder.project_source(encoder(source), mask))
    torch.testing.assert_close(ours, expected)


def test_converted_parameters_are_copies():
    theirs = nn.Transformer(12, 3, 1, 1, 20)
    own = {parameter.data_ptr() for parameter in theirs.parameters()}
    for stack in from_torch(theirs):
        assert not own & {parameter.data_ptr() for parameter in stack.parameters()}
