import numpy as np
import pytest
import torch

from regard.analysis import induction_scores
from regard.errors import RegardError


def test_head_that_finds_what_followed_scores_one():
    tokens = torch.tensor([[3, 5, 7, 3, 5, 9]])
    weights = torch.zeros(1, 2, 6, 6)
    weights[0, 0, 3, 1] = weights[0, 0, 4, 2] = 1.0
    weights[0, 1, 3, 2] = weights[0, 1, 4, 3] = 1.0  # the previous token
    np.testing.assert_array_equal(induction_scores(weights, tokens), [1.0, 0.0])


def test_weights_after_all_earlier_occurrences_are_added():
    tokens = torch.tensor([[1, 2, 1, 4, 1]])
    weights = torch.full((1, 1, 5, 5), 0.2)
    # position 2 may look at 1; position 4 at 1 and 3
    np.testing.assert_allclose(induction_scores(weights, tokens), [(0.2 + 0.4) / 2])


def test_score_is_that_of_a_loop_over_positions():
    tokens = torch.randint(4, (3, 7))
    weights = torch.rand(3, 2, 7, 7).tril().softmax(-1)
    given = [[] for _ in range(2)]
    for batch in range(3):
        for query in range(7):
            keys = [k for k in range(1, query + 1) if tokens[batch, k - 1] == tokens[batch, query]]
            for head in range(2):
                if keys:
                    given[head].append(float(weights[batch, head, query, keys].sum()))
    expected = [np.mean(values) for values in given]
    np.testing.assert_allclose(induction_scores(weights, tokens), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("weights", "tokens", "message"),
    [
        (torch.ones(2, 4, 4), torch.ones(2, 4), r"shapes are \(2, 4, 4\) and \(2, 4\)"),
        (torch.ones(2, 3, 4, 5), torch.ones(2, 4), r"shapes are \(2, 3, 4, 5\)"),
        (torch.ones(1, 3, 4, 4), torch.arange(4)[None], "none does"),
    ],
)
def test_unsuitable_input_is_refused(weights, tokens, message):
    with pytest.raises(RegardError, match=message):
        induction_scores(weights, tokens)
