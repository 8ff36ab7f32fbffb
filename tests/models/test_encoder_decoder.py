"""Encoder and decoder stacks, and the decoder's state."""

import pytest
import torch
from torch import nn

from regard import RegardError
from regard.attention import MultiHeadAttention
from regard.attention.beam_cache import MIN_PRUNED_KEYS
from regard.masks import padding
from regard.models import Decoder, Encoder, FeedForward, TransformerLayer

BATCH, BEAMS, LENGTH, KEYS, WIDTH = 2, 3, 4, 5, 12


def make_layer(cross=False):
    return TransformerLayer(
        MultiHeadAttention(WIDTH, 3),
        FeedForward(WIDTH, 20),
        MultiHeadAttention(WIDTH, 3) if cross else None,
    )


def make_encoder(norm=None):
    return Encoder([make_layer() for _ in range(2)], norm).eval()


def make_decoder():
    return Decoder([make_layer(cross=True) for _ in range(2)]).eval()


def project(decoder):
    mask = torch.arange(KEYS) < torch.tensor([[KEYS], [3]])
    return decoder.project_source(torch.randn(BATCH, KEYS, WIDTH), mask)


def decode_steps(decoder, state, inputs):
    """Decode inputs (batch, beam, position, width) step by step."""
    outputs = []
    for position in range(inputs.shape[2]):
        output, state = decoder.step(inputs[:, :, position], state)
        outputs.append(output)
    return torch.stack(outputs, dim=2), state


def test_encoder_applies_layers_in_order_and_the_norm_last():
    norm = nn.LayerNorm(WIDTH)
    nn.init.normal_(norm.weight)
    encoder, inputs = make_encoder(norm), torch.randn(BATCH, KEYS, WIDTH)
    first, second = encoder.layers
    assert torch.equal(encoder(inputs), norm(second(first(inputs).states).states))


def test_encoder_positions_see_all_unmasked_positions_and_no_other():
    encoder = make_encoder()
    inputs = torch.randn(BATCH, KEYS, WIDTH, requires_grad=True)
    mask = torch.arange(KEYS) < torch.tensor([[KEYS], [3]])
    states = encoder(inputs, padding(mask))
    (gradient,) = torch.autograd.grad(states[:, 0].pow(2).sum(), inputs)
    assert torch.equal(gradient.abs().sum(-1) > 0, mask)


def test_returned_weights_do_not_change_the_states():
    encoder, decoder = make_encoder(), make_decoder()
    inputs, source = torch.randn(BATCH, LENGTH, WIDTH), project(decoder)
    states, weights = encoder(inputs, return_weights=True)
    assert torch.equal(states, encoder(inputs))
    assert [w.shape for w in weights.encoder] == [(BATCH, 3, LENGTH, LENGTH)] * 2
    assert weights.decoder == weights.cross == ()
    states, weights = decoder(inputs, source, return_weights=True)
    assert torch.equal(states, decoder(inputs, source))
    assert [w.shape for w in weights.decoder] == [(BATCH, 3, LENGTH, LENGTH)] * 2
    assert [w.shape for w in weights.cross] == [(BATCH, 3, LENGTH, KEYS)] * 2
    assert weights.encoder == ()


def test_beams_of_a_batch_item_share_its_source_and_nothing_else():
    decoder = make_decoder()
    source = project(decoder)
    inputs = torch.randn(BATCH, BEAMS, LENGTH, WIDTH)
    outputs, _ = decode_steps(decoder, decoder.init_state(source), inputs)
    for beam in range(BEAMS):
        torch.testing.assert_close(outputs[:, beam], decoder(inputs[:, beam], source))


def test_reordered_beam_continues_the_beam_it_was_given():
    decoder = make_decoder()
    source = project(decoder)
    inputs = torch.randn(BATCH, BEAMS, LENGTH, WIDTH)
    _, state = decode_steps(decoder, decoder.init_state(source), inputs)
    next_inputs = torch.randn(BATCH, BEAMS, WIDTH)
    beam_indices = torch.tensor([2, 2, 0, 4, 3, 3])  # counted over both batch items
    outputs, _ = decoder.step(next_inputs, state.reorder(beam_indices))
    texts = inputs.flatten(0, 1)[beam_indices].unflatten(0, (BATCH, BEAMS))
    texts = torch.cat([texts, next_inputs[:, :, None]], dim=2)
    for beam in range(BEAMS):
        expected = decoder(texts[:, beam], source)[:, -1]
        torch.testing.assert_close(outputs[:, beam], expected)


def test_selected_batch_items_keep_their_source():
    decoder = make_decoder()
    source = project(decoder)
    inputs = torch.randn(BATCH, BEAMS, LENGTH, WIDTH)
    _, state = decode_steps(decoder, decoder.init_state(source), inputs)
    next_inputs = torch.randn(1, BEAMS, WIDTH)
    selected = state.select(torch.tensor([1]), torch.tensor([3, 4, 5]))
    assert (state.batch_size, selected.batch_size) == (BATCH, 1)
    outputs, _ = decoder.step(next_inputs, selected)
    texts = torch.cat([inputs[1:], next_inputs[:, :, None]], dim=2)
    for beam in range(BEAMS):
        expected = decoder(texts[:, beam], source.select(torch.tensor([1])))[:, -1]
        torch.testing.assert_close(outputs[:, beam], expected)


def test_state_before_the_first_step_can_be_reordered_and_selected():
    decoder = make_decoder()
    source = project(decoder)
    inputs = torch.randn(3, 1, LENGTH, WIDTH)
    rows = torch.tensor([1, 0, 1])
    state = decoder.init_state(source).select(rows, rows)
    outputs, _ = decode_steps(decoder, state, inputs)
    torch.testing.assert_close(outputs[:, 0], decoder(inputs[:, 0], source.select(rows)))
    beams = decoder.init_state(source).reorder(torch.tensor([0, 0, 1, 1]))
    inputs = torch.randn(BATCH, 2, LENGTH, WIDTH)
    outputs, _ = decode_steps(decoder, beams, inputs)
    torch.testing.assert_close(outputs[:, 1], decoder(inputs[:, 1], source))


def test_initial_state_holds_contiguous_keys_and_values():
    decoder = make_decoder()
    source = project(decoder)
    copied = decoder.init_state(source).source
    for after, before in zip(copied.key_values, source.key_values, strict=True):
        assert after.keys.is_contiguous() and after.values.is_contiguous()
        assert torch.equal(after.keys, before.keys) and torch.equal(after.values, before.values)


def test_steps_count_positions_and_not_beams():
    decoder = make_decoder()
    state = decoder.init_state(project(decoder))
    assert state.steps == 0
    _, state = decode_steps(decoder, state, torch.randn(BATCH, 1, 2, WIDTH))
    widened = state.reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
    assert state.steps == widened.steps == 2


def test_cached_keys_of_abandoned_beams_are_pruned():
    decoder, steps = make_decoder(), 40
    source = project(decoder)
    first = torch.tensor([0, 0, 0, 3, 3, 3])  # all continue the first beam of their batch item
    inputs = torch.randn(BATCH, BEAMS, steps, WIDTH)
    state = decoder.init_state(source)
    for position in range(steps):
        outputs, state = decoder.step(inputs[:, :, position], state)
        last, state = state, state.reorder(first)
        assert all(len(cache) < 3 * steps / 4 + 2 * MIN_PRUNED_KEYS for cache in state.caches)
    assert last.steps == steps
    for beam in range(BEAMS):
        text = torch.cat([inputs[:, 0, :-1], inputs[:, beam, -1:]], dim=1)
        torch.testing.assert_close(outputs[:, beam], decoder(text, source)[:, -1])


def test_selecting_batch_items_prunes_keys_that_no_beam_sees():
    decoder = make_decoder()
    source = project(decoder)
    inputs = torch.randn(BATCH, BEAMS, LENGTH, WIDTH)
    _, state = decode_steps(decoder, decoder.init_state(source), inputs)
    selected = state.select(torch.tensor([1]), torch.tensor([4, 4, 4]))
    assert [len(cache) for cache in selected.caches] == [LENGTH, LENGTH]
    next_inputs = torch.randn(1, BEAMS, WIDTH)
    outputs, _ = decoder.step(next_inputs, selected)
    for beam in range(BEAMS):
        text = torch.cat([inputs[1:, 1], next_inputs[:, beam, None]], dim=1)
        expected = decoder(text, source.select(torch.tensor([1])))[:, -1]
        torch.testing.assert_close(outputs[:, beam], expected)


@pytest.mark.parametrize("with_cross", [(True, False), (False, True, False)])
def test_layers_with_and_without_cross_attention_can_be_mixed(with_cross):
    decoder = Decoder([make_layer(cross) for cross in with_cross]).eval()
    source = project(decoder)
    inputs = torch.randn(BATCH, 1, LENGTH, WIDTH)
    outputs, _ = decode_steps(decoder, decoder.init_state(source), inputs)
    states, weights = decoder(inputs[:, 0], source, return_weights=True)
    torch.testing.assert_close(outputs[:, 0], states)
    assert (len(weights.decoder), len(weights.cross)) == (len(with_cross), 1)


def test_step_with_another_batch_size_than_the_state_is_refused():
    decoder = make_decoder()
    state = decoder.init_state(project(decoder))
    with pytest.raises(RegardError, match="a row for each of 2 batch items, but there are 3 rows"):
        decoder.step(torch.randn(3, 1, WIDTH), state)
