from math import exp, sqrt

import pytest
import torch

from regard.demo import TOKENS, WORDS
from regard.gallery import figure_page
from regard.gallery.five_tokens import draw


def by_hand():
    """Scores, weights and context in plain Python."""
    scores = [
        [sum(a * b for a, b in zip(q, k, strict=True)) / sqrt(4) for k in TOKENS] for q in TOKENS
    ]
    sums = [sum(map(exp, row)) for row in scores]
    weights = [
        [exp(score) / total for score in row] for row, total in zip(scores, sums, strict=True)
    ]
    context = [
        [sum(w * k[n] for w, k in zip(row, TOKENS, strict=True)) for n in range(4)]
        for row in weights
    ]
    return scores, weights, context


@pytest.fixture(scope="module")
def pictures():
    return draw()


def test_matrices_match_the_values_computed_by_hand(pictures):
    drawn = [torch.tensor(axes.images[0].get_array()) for axes in pictures["steps"].axes]
    for matrix, expected in zip(drawn, (TOKENS, *by_hand()), strict=True):
        assert torch.allclose(
            matrix.double(), torch.tensor(expected, dtype=torch.float64), atol=1e-6
        )
    assert torch.allclose(drawn[2].sum(-1), torch.ones(5, dtype=drawn[2].dtype))


def test_table_shows_the_first_row(pictures):
    scores, weights, context = by_hand()
    cells = pictures["by-hand"].axes[0].tables[0].get_celld()
    text = {place: cell.get_text().get_text() for place, cell in cells.items()}
    for key, word in enumerate(WORDS):
        assert text[key + 1, 0] == word
        assert text[key + 1, 1].endswith(f"= {scores[0][key]:.2f}")
        assert text[key + 1, 3].endswith(f"= {weights[0][key]:.2f}")
    assert text[6, 4] == "(" + ", ".join(f"{number:.2f}" for number in context[0]) + ")"
    assert eval(text[5, 1].split("=")[0].replace("·", "*")) == scores[0][4]


def test_value_in_the_text_matches_the_picture():
    _, _, context = by_hand()
    for text in figure_page.load_page("five_tokens").texts.values():
        assert f"{context[0][1]:.2f}" in " ".join(text.notice)
