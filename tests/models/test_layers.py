"""Embedding, feed-forward, residual, and the Transformer layer made of them."""

import pytest
import torch
from torch import nn

from regard import RegardError
from regard.attention import BeamTree, KVCache, MultiHeadAttention
from regard.masks import causal
from regard.models import Embedding, FeedForward, Residual, TransformerLayer
from regard.positions import Learned, Sinusoidal

BATCH, LENGTH, KEYS, WIDTH = 2, 5, 4, 12


def make_layer(cross=False, pre_norm=False):
    return TransformerLayer(
        MultiHeadAttention(WIDTH, 3),
        FeedForward(WIDTH, 20),
        MultiHeadAttention(WIDTH, 3) if cross else None,
        pre_norm=pre_norm,
    ).eval()


@pytest.mark.parametrize(("activation", "theirs"), [("relu", nn.ReLU()), ("gelu", nn.GELU())])
def test_feed_forward_is_two_linear_layers_with_an_activation_between(activation, theirs):
    ours = FeedForward(6, 10, activation=activation)
    states = torch.randn(2, 5, 6)
    torch.testing.assert_close(ours(states), ours.down(theirs(ours.up(states))))


@pytest.mark.usefixtures("unchecked")
def test_unknown_activation_is_refused_with_the_nearest():
    with pytest.raises(RegardError, match="no activation is called 'gleu'. Did you mean 'gelu'"):
        FeedForward(6, 12, activation="gleu")


def test_residual_normalises_after_the_sum_or_before_the_sublayer():
    states = 3 * torch.randn(2, 5, 6) + 1
    post, pre = Residual(6), Residual(6, pre_norm=True)
    torch.testing.assert_close(post(states, torch.sin), post.norm(states + states.sin()))
    torch.testing.assert_close(pre(states, torch.sin), states + pre.norm(states).sin())


def test_residual_dropout_affects_the_sublayers_output_and_only_in_training():
    states, residual = torch.randn(2, 5, 6), Residual(6, dropout=1.0, pre_norm=True)
    assert torch.equal(residual(states, torch.sin), states)
    residual.eval()
    assert not torch.equal(residual(states, torch.sin), states)


def test_embedding_is_scaled_by_root_width_and_adds_positions():
    plain, positioned = Embedding(9, 6), Embedding(9, 6, Sinusoidal(6))
    positioned.weight = plain.weight
    tokens = torch.tensor([[3, 5, 3]])
    torch.testing.assert_close(plain(tokens)[0, 1], plain.weight[5] * 6**0.5)
    expected = Sinusoidal(6)(plain(tokens), offset=4)
    torch.testing.assert_close(positioned(tokens, offset=4), expected)


def test_embedding_at_one_position_treats_all_beams_alike():
    embedding = Embedding(9, 6, Sinusoidal(6))
    beams = embedding.at(torch.tensor([[3, 5], [7, 3]]), position=2)
    torch.testing.assert_close(beams[1, 1], beams[0, 0])
    torch.testing.assert_close(beams[0, 1:2][None], embedding(torch.tensor([[5]]), offset=2))


def test_max_length_of_an_embedding_is_that_of_its_positions():
    assert Embedding(9, 12).max_length is None
    assert Embedding(9, 12, Sinusoidal(12)).max_length is None
    assert Embedding(9, 12, Learned(7, 12)).max_length == 7


@pytest.mark.parametrize("pre_norm", [True, False])
def test_layer_computes_the_papers_equations(pre_norm):
    layer, inputs = make_layer(cross=True, pre_norm=pre_norm), torch.randn(BATCH, LENGTH, WIDTH)
    source = torch.randn(BATCH, KEYS, WIDTH)

    def residual(module, x, sublayer):
        if pre_norm:
            return x + sublayer(module.norm(x))
        return module.norm(x + sublayer(x))

    expected = residual(layer.attention_residual, inputs, layer.attention)
    expected = residual(layer.cross_residual, expected, lambda x: layer.cross(x, source))
    expected = residual(layer.feed_forward_residual, expected, layer.feed_forward)
    output = layer(inputs, source=layer.cross.project_kv(source))
    torch.testing.assert_close(output.states, expected)


def test_layer_step_by_step_equals_all_positions_at_once():
    layer, inputs = make_layer(), torch.randn(BATCH, LENGTH, WIDTH)
    cache, outputs, tree = KVCache(), [], BeamTree.begin(BATCH, inputs.device)
    for position in inputs.split(1, dim=1):
        tree = tree.grow(1)
        output, cache = layer.step(position, cache, tree)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, dim=1), layer(inputs, causal()).states)


def test_layer_returns_both_kinds_of_weights_if_asked_for():
    layer, inputs = make_layer(cross=True), torch.randn(BATCH, LENGTH, WIDTH)
    source = layer.cross.project_kv(torch.randn(BATCH, KEYS, WIDTH))
    plain, output = layer(inputs, source=source), layer(inputs, source=source, return_weights=True)
    assert torch.equal(output.states, plain.states)
    assert output.weights.shape == (BATCH, 3, LENGTH, LENGTH)
    assert output.cross_weights.shape == (BATCH, 3, LENGTH, KEYS)
    assert plain.weights is plain.cross_weights is None


def test_layer_with_cross_attention_refuses_to_run_without_a_source():
    """It would attend to its own inputs, those of later positions among them."""
    layer, inputs = make_layer(cross=True), torch.randn(BATCH, 3, WIDTH)
    with pytest.raises(RegardError, match="needs a source, but source is None"):
        layer(inputs, causal())
    with pytest.raises(RegardError, match="needs a source, but source is None"):
        layer.step(inputs[:, :1], KVCache(), BeamTree.begin(2, inputs.device).grow(1))


@pytest.mark.parametrize(
    "make", [lambda rate: Embedding(9, 12, None, rate), lambda rate: FeedForward(12, 8, rate)]
)
@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_dropout_that_is_no_probability_is_refused(make, rate):
    with pytest.raises(RegardError, match="dropout must be a probability from 0 to 1, but it is"):
        make(rate)
    with pytest.raises(RegardError, match="dropout must be a probability from 0 to 1, but it is"):
        Residual(12, dropout=rate)


def test_sizes_below_one_are_refused():
    with pytest.raises(RegardError, match="vocab_size must be 1 or more, but it is 0"):
        Embedding(0, 12)
    with pytest.raises(RegardError, match="ffn_width must be 1 or more, but it is 0"):
        FeedForward(12, 0)
