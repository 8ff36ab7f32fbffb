import pytest
import torch

from regard.attention import SCORE_NAMES
from regard.config import ModelConfig
from regard.models import Embedding, Recurrent, build
from regard.positions import Sinusoidal

BATCH, SOURCE, TARGET, WIDTH, VOCABULARY = 3, 7, 5, 12, 11
LENGTHS = torch.tensor([7, 3, 5])


def make(**changed):
    settings = {
        "kind": "recurrent",
        "width": WIDTH,
        "layers": 2,
        "score": "additive",
    } | changed
    return build(ModelConfig(**settings), (VOCABULARY, VOCABULARY)).eval()


def sentences(length):
    return torch.randint(4, VOCABULARY, (BATCH, length))


def test_the_reader_is_torchs_gru_on_each_sentence_alone():
    model = make()
    source = sentences(SOURCE)
    memory, keep, first = model.encode(source, LENGTHS)
    for row, length in enumerate(LENGTHS):
        states, last = model.reader(model.source(source[row : row + 1, :length]))
        torch.testing.assert_close(memory.values[row, :length], states[0])
        expected = torch.tanh(model.bridge(last[1::2]))[:, 0]
        torch.testing.assert_close(first[:, row], expected)
        assert keep[row].sum() == length


@pytest.mark.parametrize("score", SCORE_NAMES)
def test_step_by_step_is_all_at_once_and_padding_changes_nothing(score):
    model = make(score=score)
    source, target = sentences(SOURCE), sentences(TARGET)
    memory = model.encode(source, LENGTHS)
    at_once = model.decode(target, memory)
    past, states = model.start(memory), []
    for token in target.split(1, dim=1):
        state, past = model.step(token, past)
        states.append(state)
    torch.testing.assert_close(torch.cat(states, dim=1), at_once)
    for row, length in enumerate(LENGTHS):
        alone = model.encode(source[row : row + 1, :length], LENGTHS[row : row + 1])
        torch.testing.assert_close(
            model.decode(target[row : row + 1], alone), at_once[row : row + 1]
        )


def test_beams_of_a_sentence_look_at_one_source():
    model = make()
    source, tokens = sentences(SOURCE), torch.randint(4, VOCABULARY, (BATCH, 2))
    past = model.start(model.encode(source, LENGTHS))
    twice = past.reorder(torch.arange(BATCH).repeat_interleave(2))
    side_by_side, _ = model.step(tokens, twice)
    for beam in range(2):
        one, _ = model.step(tokens[:, beam : beam + 1], past)
        torch.testing.assert_close(side_by_side[:, beam : beam + 1], one)


def test_keys_are_projected_once_per_sentence(monkeypatch):
    model = make()
    memory = model.encode(sentences(SOURCE), LENGTHS)

    def refuse(*_):
        raise AssertionError("keys were projected again")

    monkeypatch.setattr(model.score.project_keys, "forward", refuse)
    assert model.decode(sentences(TARGET), memory).shape == (BATCH, TARGET, WIDTH)


def test_looking_changes_nothing_and_tells_where():
    model = make()
    source, target = sentences(SOURCE), sentences(TARGET)
    states, looks = model.look(source, LENGTHS, target)
    assert torch.equal(states, model.decode(target, model.encode(source, LENGTHS)))
    assert looks.encoder == looks.decoder == ()
    (cross,) = looks.cross
    assert cross.shape == (BATCH, 1, TARGET, SOURCE)
    assert (cross[1, :, :, 3:] == 0).all()
    torch.testing.assert_close(cross.sum(-1), torch.ones(BATCH, 1, TARGET))


def test_an_empty_sentence_is_refused():
    with pytest.raises(ValueError, match="sentence 2 has 0"):
        make().encode(sentences(4), torch.tensor([4, 1, 0]))


def test_a_target_with_positions_is_refused():
    target = Embedding(9, 12, Sinusoidal(12))
    with pytest.raises(ValueError, match="target must be an embedding without positions"):
        Recurrent(target, target)


def test_an_empty_target_has_no_states():
    model = build(ModelConfig(kind="recurrent", width=12, layers=1), (9, 9)).eval()
    memory = model.encode(torch.tensor([[4, 5], [6, 7]]), torch.tensor([2, 2]))
    assert model.decode(torch.zeros(2, 0, dtype=torch.long), memory).shape == (2, 0, 12)


def test_another_number_of_sentences_than_were_read_is_refused():
    model = build(ModelConfig(kind="recurrent", width=12, layers=1), (9, 9)).eval()
    memory = model.encode(torch.tensor([[4, 5], [6, 7]]), torch.tensor([2, 2]))
    with pytest.raises(ValueError, match=r"a token for each of 2 continuations, .* \(3, 1\)"):
        model.step(torch.full((3, 1), 4), model.start(memory))
