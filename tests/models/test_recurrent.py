"""The recurrent encoder-decoder with attention."""

import pytest
import torch

from regard import RegardError
from regard.attention import SCORE_NAMES
from regard.config import ModelConfig
from regard.models import Embedding, RecurrentModel, build
from regard.positions import Sinusoidal

BATCH, SOURCE, TARGET, WIDTH, VOCAB_SIZE = 3, 7, 5, 12, 11
LENGTHS = torch.tensor([7, 3, 5])


def make_model(**changes):
    settings = {"kind": "recurrent", "width": WIDTH, "layers": 2, "score": "additive"} | changes
    return build(ModelConfig(**settings), VOCAB_SIZE).eval()


def random_tokens(length):
    return torch.randint(4, VOCAB_SIZE, (BATCH, length))


def test_encoder_is_torchs_gru_on_each_source_alone():
    model = make_model()
    source = random_tokens(SOURCE)
    encoded = model.encode(source, LENGTHS)
    (key_values,) = encoded.key_values
    for row, length in enumerate(LENGTHS):
        embedded = model.source_embedding(source[row : row + 1, :length])
        states, last = model.encoder(embedded)
        torch.testing.assert_close(key_values.values[row, :length], states[0])
        expected = torch.tanh(model.init_projection(last[1::2]))[:, 0]
        torch.testing.assert_close(encoded.initial_hidden[:, row], expected)
        assert encoded.mask[row].sum() == length


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_step_by_step_equals_teacher_forcing_and_padding_changes_nothing(score):
    model = make_model(score=score)
    source, target = random_tokens(SOURCE), random_tokens(TARGET)
    encoded = model.encode(source, LENGTHS)
    at_once = model.decode(target, encoded)
    state, outputs = model.init_state(encoded), []
    for token in target.split(1, dim=1):
        output, state = model.step(token, state)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, dim=1), at_once)
    for row, length in enumerate(LENGTHS):
        rows = slice(row, row + 1)
        alone = model.encode(source[rows, :length], LENGTHS[rows])
        torch.testing.assert_close(model.decode(target[rows], alone), at_once[rows])


def test_beams_of_a_batch_item_attend_to_one_source():
    model = make_model()
    source, tokens = random_tokens(SOURCE), torch.randint(4, VOCAB_SIZE, (BATCH, 2))
    state = model.init_state(model.encode(source, LENGTHS))
    two_beams = state.reorder(torch.arange(BATCH).repeat_interleave(2))
    together, _ = model.step(tokens, two_beams)
    for beam in range(2):
        alone, _ = model.step(tokens[:, beam : beam + 1], state)
        torch.testing.assert_close(together[:, beam : beam + 1], alone)


def test_keys_are_projected_once_per_source(monkeypatch):
    model = make_model()
    encoded = model.encode(random_tokens(SOURCE), LENGTHS)

    def refuse(*_):
        raise AssertionError("keys were projected again")

    monkeypatch.setattr(model.score.key_projection, "forward", refuse)
    assert model.decode(random_tokens(TARGET), encoded).shape == (BATCH, TARGET, WIDTH)


def test_returned_weights_are_cross_attention_of_one_head_and_change_nothing():
    model = make_model()
    source, target = random_tokens(SOURCE), random_tokens(TARGET)
    states, weights = model.forward_with_weights(source, LENGTHS, target)
    assert torch.equal(states, model(source, LENGTHS, target))
    assert weights.encoder == weights.decoder == ()
    (cross,) = weights.cross
    assert cross.shape == (BATCH, 1, TARGET, SOURCE)
    assert (cross[1, :, :, 3:] == 0).all()
    torch.testing.assert_close(cross.sum(-1), torch.ones(BATCH, 1, TARGET))


def test_model_without_attention_sees_the_last_source_token_only():
    model = make_model(use_attention=False)
    _, weights = model.forward_with_weights(random_tokens(SOURCE), LENGTHS, random_tokens(TARGET))
    expected = torch.nn.functional.one_hot(LENGTHS - 1, SOURCE).float()
    assert torch.equal(weights.cross[0], expected[:, None, None].expand(-1, 1, TARGET, -1))


def test_empty_source_is_refused():
    with pytest.raises(ValueError, match="item 2 has length 0"):
        make_model().encode(random_tokens(4), torch.tensor([4, 1, 0]))


def test_target_embedding_with_positions_is_refused():
    target = Embedding(9, 12, Sinusoidal(12))
    with pytest.raises(RegardError, match="target_embedding must have no positions.*Sinusoidal"):
        RecurrentModel(target, target)


def test_empty_target_has_no_states_and_no_weights():
    model, source = make_model(), random_tokens(SOURCE)
    empty = torch.zeros(BATCH, 0, dtype=torch.long)
    assert model(source, LENGTHS, empty).shape == (BATCH, 0, WIDTH)
    states, weights = model.forward_with_weights(source, LENGTHS, empty)
    assert states.shape == (BATCH, 0, WIDTH)
    assert weights.cross[0].shape == (BATCH, 1, 0, SOURCE)


def test_step_with_another_number_of_beams_than_the_state_is_refused():
    model = make_model()
    state = model.init_state(model.encode(random_tokens(SOURCE), LENGTHS))
    with pytest.raises(RegardError, match=r"one for each of 3 beams, .* \(4, 1\)"):
        model.step(torch.full((4, 1), 4), state)
