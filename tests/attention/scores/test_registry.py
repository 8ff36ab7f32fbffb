import pytest
import torch

from regard.attention import (
    SCORE_NAMES,
    Additive,
    Bilinear,
    ScaledDot,
    attend,
    get_score,
    make_score,
)
from regard.errors import RegardError


@pytest.mark.parametrize("name", SCORE_NAMES)
def test_every_name_makes_a_score_of_all_pairs(name):
    scores = make_score(name, (12, 12))(torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    assert scores.shape == (2, 5, 7)


@pytest.mark.parametrize("spelling", ["scaled_dot", "scaled dot", "scaled-dot"])
def test_spaces_and_hyphens_may_replace_underscores(spelling):
    assert isinstance(make_score(spelling), ScaledDot)
    assert get_score(spelling) is get_score("scaled_dot")


@pytest.mark.parametrize(
    ("alias", "kind"), [("bahdanau", Additive), ("luong", Bilinear), ("general", Bilinear)]
)
def test_names_of_the_literature_are_aliases(alias, kind):
    assert isinstance(make_score(alias, (12, 4)), kind)


def test_parametric_scores_have_the_given_widths():
    assert make_score("additive", (12, 4)).widths == (12, 4)
    assert make_score("bilinear", (12, 4)).widths == (12, 4)


def test_get_score_shares_and_make_score_builds():
    assert get_score("cosine") is get_score("cosine")
    assert make_score("cosine") is not make_score("cosine")


def test_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(RegardError, match=r"called 'aditive'\. Did you mean 'additive'"):
        attend(torch.ones(2, 3), score="aditive")
    with pytest.raises(RegardError, match="Choose from: additive, average, bahdanau, bilinear"):
        make_score("zzz")


@pytest.mark.parametrize("name", ["bilinear", "luong"])
def test_parametric_score_without_widths_is_refused_with_a_fix(name):
    with pytest.raises(RegardError, match=r"score = regard\.Bilinear\(query_width, key_width\)"):
        get_score(name)
