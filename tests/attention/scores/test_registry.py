import pytest
import torch

from regard import RegardError
from regard.attention import SCORE_NAMES, Additive, Bilinear, attend, make_score
from regard.attention.scores import get_score


def test_every_name_makes_a_score_of_all_pairs():
    for name in SCORE_NAMES:
        scores = make_score(name, (12, 12))(torch.randn(2, 5, 12), torch.randn(2, 7, 12))
        assert scores.shape == (2, 5, 7)


def test_names_may_be_written_with_dashes():
    assert (
        repr(make_score("scaled-dot"))
        == repr(make_score("scaled_dot"))
        == repr(make_score("scaled_dot"))
    )


def test_learned_scores_take_widths():
    additive = make_score("additive", (12, 4))
    assert isinstance(additive, Additive)
    assert additive.widths == (12, 4)
    assert isinstance(make_score("bilinear", (12, 4)), Bilinear)


def test_a_shared_score_is_made_once_and_a_named_one_anew():
    assert get_score("cosine") is get_score("cosine")
    assert make_score("cosine") is not make_score("cosine")


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(RegardError, match=r"called 'aditive'\. Did you mean 'additive'"):
        attend(torch.ones(2, 3), score="aditive")
    with pytest.raises(RegardError, match="Choose from: additive, average, bilinear"):
        make_score("zzz")


def test_a_learned_score_without_widths_says_how_to_make_one():
    with pytest.raises(ValueError, match=r"score = regard\.Bilinear\(query_width, key_width\)"):
        make_score("bilinear")
