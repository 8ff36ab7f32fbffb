import numpy as np
import pytest

from regard.trace import Tokens, merged, translation


def test_keys_add_up_and_queries_are_averaged_by_hand():
    source = Tokens(("look", "ing", "up", "</s>"), words=(0, 0, 1, None), special=(3,))
    target = Tokens(("auf", "se", "hen"), words=(0, 1, 1), log_probabilities=(-1.0, -2.0, None))
    rows = [[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0], [0, 0, 0.5, 0.5]]
    trace = merged(translation(source, target, cross=[[rows]], gold=[(0, 1)]))
    assert trace.tokens["source"].pieces == ("looking", "up", "</s>")
    assert trace.tokens["source"].special == (2,)
    assert trace.tokens["target"].pieces == ("auf", "sehen")
    assert trace.tokens["target"].log_probabilities == (-1.0, -2.0)
    assert trace.gold == ((0, 1),)
    expected = [[0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]
    np.testing.assert_allclose(trace.looks[0].weights[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("pieces", "joined"),
    [
        (("look", "##ed", "at", "##7"), ("looked", "at7")),  # WordPiece
        (("look", "ed", "at", "##7"), ("looked", "at##7")),  # of another kind: signs of the text
        (("##", "##7", "a", "##b"), ("##7", "ab")),
    ],
)
def test_marks_that_part_a_word_go_when_its_pieces_are_joined(pieces, joined):
    source = Tokens(pieces, words=(0, 0, 1, 1))
    trace = merged(translation(source, ["x"], cross=[np.ones((1, 1, 4)) / 4]))
    assert trace.tokens["source"].pieces == joined


def test_rows_still_sum_to_one():
    words = Tokens(tuple("abcdefg"), words=(None, 0, 0, 0, 1, 2, 2))
    whole = np.random.default_rng(0).dirichlet(np.ones(7), (3, 7))
    trace = merged(translation(words, words, encoder=[whole]))
    np.testing.assert_allclose(trace.looks[0].weights.sum(-1), 1, atol=1e-6)
    assert trace.looks[0].sizes == (3, 4, 4)


def test_pieces_without_words_stay_as_they_are():
    trace = translation(list("abc"), ["x", "y"], cross=[np.ones((1, 2, 3)) / 3])
    assert merged(trace).tokens == trace.tokens


def test_two_special_pieces_side_by_side_stay_two():
    source = Tokens(("<s>", "<fr>", "a"), words=(None, None, 0))
    trace = merged(translation(source, ["x"], cross=[np.ones((1, 1, 3)) / 3]))
    assert trace.tokens["source"].pieces == ("<s>", "<fr>", "a")


def test_padding_is_still_known():
    source = Tokens(("a", "b", "", ""), words=(0, 0, None, None), padding=(2, 3))
    trace = merged(translation(source, ["x"], cross=[np.ones((1, 1, 4)) / 4]))
    assert trace.tokens["source"].padding == (1, 2)


def test_reduced_weights_are_refused(reduced_trace):
    with pytest.raises(ValueError, match="only whole weights can be merged into words"):
        merged(reduced_trace)
