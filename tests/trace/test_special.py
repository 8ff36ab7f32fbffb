from dataclasses import replace

import numpy as np
import pytest

from regard.trace import Tokens, merged, translation
from regard.trace.special import fold_special


def padded():
    weights = np.random.default_rng(0).dirichlet(np.ones(6), size=(3, 4))
    return translation(
        Tokens(
            ("<s>", "a", "b", "</s>", "<pad>", "<pad>"),
            words=(None, 0, 1, None, None, None),
            special=(0, 3),
            padding=(4, 5),
        ),
        Tokens(("x", "y", "z", "</s>"), special=(3,)),
        cross=[weights],
    )


def test_special_pieces_and_padding_become_one_last_piece():
    folded = fold_special(padded())
    assert folded.tokens["source"].pieces == ("a", "b", "⋯")
    assert folded.tokens["source"].words == (0, 1, None)
    assert folded.tokens["source"].special == (2,)
    assert folded.tokens["target"].pieces == ("x", "y", "z", "⋯")


def test_what_they_were_given_is_summed_and_rows_still_sum_to_one():
    before, after = padded().looks[0].weights, fold_special(padded()).looks[0].weights
    assert after.shape == (3, 4, 3)
    np.testing.assert_allclose(after.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose(after[..., :2], before[..., 1:3])
    np.testing.assert_allclose(after[..., 2], before[..., [0, 3, 4, 5]].sum(-1), rtol=1e-6)


def test_rows_of_special_pieces_become_their_mean():
    weights = np.array([[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.1, 0.7, 0.2]]])
    tokens = Tokens(("<s>", "a", "</s>"), special=(0, 2))
    folded = fold_special(translation(tokens, tokens, encoder=[weights])).looks[0].weights
    np.testing.assert_allclose(folded, [[[1.0, 0.0], [0.475, 0.525]]], rtol=1e-6)


def test_folding_twice_or_before_merging_changes_nothing_more():
    once = fold_special(padded())
    twice = fold_special(once)
    assert once.tokens == twice.tokens
    np.testing.assert_allclose(once.looks[0].weights, twice.looks[0].weights)
    np.testing.assert_allclose(merged(once).looks[0].weights, once.looks[0].weights)


def test_a_trace_without_special_pieces_stays_as_it_is():
    trace = translation(["a", "b"], ["c"], cross=[np.array([[[0.25, 0.75]]])])
    folded = fold_special(trace)
    assert folded.tokens == trace.tokens
    assert folded.looks[0].weights.tolist() == [[[0.25, 0.75]]]


def test_value_norms_and_probabilities_are_folded_too():
    trace = translation(
        Tokens(("<s>", "a", "</s>"), special=(0, 2), log_probabilities=(None, -1.0, -2.0)),
        ["x"],
        cross=[np.array([[[0.25, 0.5, 0.25]]])],
    )
    norms = np.array([[4.0, 3.0, 8.0]], dtype=np.float32)
    folded = fold_special(replace(trace, looks=(replace(trace.looks[0], value_norms=norms),)))
    assert folded.tokens["source"].log_probabilities == (-1.0, None)
    assert folded.looks[0].value_norms.tolist() == [[3.0, 6.0]]


def test_reduced_looks_are_refused(reduced_trace):
    with pytest.raises(ValueError, match=r"was reduced, and only whole weights can be folded"):
        fold_special(reduced_trace)


def test_gold_links_follow_the_words_that_are_left():
    def folded(words):
        tokens = Tokens(("<s>", "a", "b", "</s>"), words=words, special=(0, 3))
        links = [(1, 1), (2, 2), (1, 3)] if words is None else [(0, 0), (1, 1)]
        return fold_special(translation(tokens, tokens, gold=links)).gold

    assert folded(None) == ((0, 0), (1, 1))
    assert folded((None, 0, 1, None)) == ((0, 0), (1, 1))
