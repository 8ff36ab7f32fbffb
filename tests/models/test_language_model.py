import torch

from regard.config import ModelConfig
from regard.models import build_language_model
from regard.models.protocols import longest

BATCH, LENGTH, VOCABULARY = 3, 7, 11
SETTINGS = {"width": 24, "layers": 2, "heads": 6, "ffn_width": 20}


def test_a_language_model_steps_as_it_reads():
    model = build_language_model(ModelConfig(**SETTINGS), VOCABULARY).eval()
    text = torch.randint(4, VOCABULARY, (BATCH, LENGTH))
    past, states = model.start(), []
    for token in text.split(1, dim=1):
        state, past = model.step(token, past)
        states.append(state)
    torch.testing.assert_close(torch.cat(states, dim=1), model(text), rtol=1e-4, atol=1e-5)


def test_its_looks_are_noted_and_do_not_change_its_states():
    model = build_language_model(ModelConfig(**SETTINGS), VOCABULARY).eval()
    text, notes = torch.randint(4, VOCABULARY, (BATCH, LENGTH)), []
    assert torch.equal(model(text, notes), model(text))
    assert [weights.shape for weights in notes] == [(BATCH, 6, LENGTH, LENGTH)] * 2
    assert all((weights.triu(1) == 0).all() for weights in notes)


def test_it_tells_how_long_a_text_may_be():
    learned = ModelConfig(
        width=12, layers=1, heads=3, ffn_width=8, positions="learned", max_positions=16
    )
    assert longest(build_language_model(learned, 9)) == 16
    assert (
        longest(build_language_model(ModelConfig(width=12, layers=1, heads=3, ffn_width=8), 9))
        is None
    )
