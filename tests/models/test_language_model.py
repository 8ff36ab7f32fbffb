import torch

from regard.config import Model
from regard.models import build_language_model
from regard.models.translator import longest

BATCH, LENGTH, VOCABULARY = 3, 7, 11
SETTINGS = {"width": 24, "layers": 2, "heads": 6, "hidden": 20}


def test_a_language_model_steps_as_it_reads():
    model = build_language_model(Model(**SETTINGS), VOCABULARY).eval()
    text = torch.randint(4, VOCABULARY, (BATCH, LENGTH))
    past, states = model.start(), []
    for token in text.split(1, dim=1):
        state, past = model.step(token, past)
        states.append(state)
    torch.testing.assert_close(torch.cat(states, dim=1), model(text), rtol=1e-4, atol=1e-5)


def test_its_looks_are_noted_and_do_not_change_its_states():
    model = build_language_model(Model(**SETTINGS), VOCABULARY).eval()
    text, notes = torch.randint(4, VOCABULARY, (BATCH, LENGTH)), []
    assert torch.equal(model(text, notes), model(text))
    assert [weights.shape for weights in notes] == [(BATCH, 6, LENGTH, LENGTH)] * 2
    assert all((weights.triu(1) == 0).all() for weights in notes)


def test_it_tells_how_long_a_text_may_be():
    learned = Model(width=12, layers=1, heads=3, hidden=8, positions="learned", longest=16)
    assert longest(build_language_model(learned, 9)) == 16
    assert longest(build_language_model(Model(width=12, layers=1, heads=3, hidden=8), 9)) is None
