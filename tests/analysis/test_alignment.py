import pytest
import torch

from helpers.alignments import peaked_weights
from regard import RegardError
from regard.analysis import alignment_error_rate, symmetrise
from regard.analysis.alignment import align


@pytest.mark.parametrize(
    "predicted, gold, possible, rate",
    [
        ([(0, 0), (1, 1)], [(0, 0), (1, 1)], None, 0.0),
        ([(0, 1)], [(0, 0)], None, 1.0),
        ([(0, 0), (1, 2)], [(0, 0), (1, 1)], None, 0.5),
        ([(0, 0), (1, 2)], [(0, 0)], [(1, 2)], 0.0),
        ([(0, 0)], [(0, 0), (1, 1)], None, 1 / 3),
        ([], [], None, 0.0),
        ([], [(0, 0)], None, 1.0),
    ],
)
def test_alignment_error_rate_of_cases_worked_by_hand(predicted, gold, possible, rate):
    assert alignment_error_rate(predicted, gold, possible) == pytest.approx(rate)


def test_alignment_error_rate_counts_duplicate_links_of_a_generator_once():
    assert alignment_error_rate((link for link in [(0, 0), (0, 0)]), [(0, 0)]) == 0


def test_target_words_are_linked_to_their_heaviest_source_word():
    assert align(peaked_weights(2, 0, 0)) == {(2, 0), (0, 1), (0, 2)}


def test_row_of_zeros_has_no_link():
    weights = peaked_weights(2, 0)
    weights[0] = 0
    assert align(weights) == {(0, 1)}


def test_weights_of_several_heads_are_refused():
    with pytest.raises(RegardError, match=r"must be those of one head, \(target, source\)"):
        align(peaked_weights(1, 2)[None])


def test_symmetric_alignment_grows_from_the_intersection():
    # target 1 chooses source 0, which prefers target 0; source 1 chooses target 1, too
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])
    assert align(weights) == {(0, 0), (0, 1), (2, 2)}
    assert align(weights, symmetric=True) == {(0, 0), (0, 1), (1, 1), (2, 2)}


def test_symmetrise_adds_only_neighbours_with_a_free_word():
    assert symmetrise({(0, 0), (5, 1)}, {(0, 0)}) == {(0, 0)}
    assert symmetrise({(0, 0), (1, 1)}, {(0, 0)}) == {(0, 0), (1, 1)}
    assert symmetrise({(0, 0), (0, 1), (1, 1)}, {(0, 0), (1, 1), (1, 0)}) == {(0, 0), (1, 1)}
