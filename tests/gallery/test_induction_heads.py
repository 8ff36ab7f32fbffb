import numpy as np
import pytest
import torch

from regard.analysis import induction_scores
from regard.gallery import induction_heads
from regard.gallery.copying import LETTERS, random_texts, train_copier

pytestmark = [pytest.mark.train, pytest.mark.usefixtures("unchecked")]

CHANCE = 1 / len(LETTERS)


@pytest.fixture(scope="module")
def copier():
    return train_copier()


@pytest.fixture
def pictures(copier, monkeypatch):
    monkeypatch.setattr(induction_heads, "train_copier", lambda: copier)
    return induction_heads.draw()


def test_second_occurrence_repeats_the_first():
    letters, is_copy = random_texts(20, torch.Generator().manual_seed(0))
    for text, copied in zip(letters, is_copy, strict=True):
        where = copied.nonzero().flatten()
        passage = text[where[0] - 1 : where[-1] + 1]  # its first letter is not predicted
        firsts = [
            n for n in range(int(where[0]) - 1) if torch.equal(text[n : n + len(passage)], passage)
        ]
        assert len(where) >= 7 and firsts


def test_copying_stops_without_the_induction_heads_and_not_without_others(pictures):
    (bars,) = pictures["ablation"].axes[0].containers
    everything, no_induction, no_previous, no_others = (bar.get_width() for bar in bars)
    assert everything > 0.85
    assert no_induction < 3 * CHANCE
    assert no_previous < 0.5
    assert no_others > everything - 0.05


def test_induction_head_is_in_the_second_layer(pictures):
    scores = np.asarray(pictures["scores"].axes[1].images[0].get_array())
    assert scores[1].max() > 0.6 > 0.3 > scores[0].max()


def test_drawn_induction_head_attends_to_the_outlined_letters(pictures):
    axes = pictures["patterns"].axes[1]
    weights = np.asarray(axes.images[0].get_array())
    outlined = [
        (round(patch.get_y() + 0.42), round(patch.get_x() + 0.42))
        for patch in axes.patches
        if not patch.get_fill()
    ]
    assert len(outlined) >= 7
    assert np.mean([weights[cell] for cell in outlined]) > 0.6
    letters = [label.get_text() for label in axes.get_xticklabels()]
    assert all(letters[key] == letters[query + 1] for query, key in outlined)


def test_scores_are_those_of_the_model(pictures, copier):
    texts = random_texts(induction_heads.TEST_TEXTS, torch.Generator().manual_seed(1))
    from regard import watch

    with torch.no_grad(), watch(copier, keep="all") as capture:
        copier(texts.letters)
    expected = [induction_scores(record.weights, texts.letters) for record in capture]
    drawn = np.asarray(pictures["scores"].axes[1].images[0].get_array())
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)
