import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding import topk
from regard.decoding.topk import GROUP, best

sizes = st.sampled_from([1, 2, GROUP - 1, GROUP, GROUP + 1, 3 * GROUP, 5 * GROUP + 7])


def scored(sentences, beams, tokens, seed, spread=1.0):
    chance = torch.Generator().manual_seed(seed)
    scores = spread * torch.randn(sentences, beams, tokens, generator=chance)
    return scores, torch.randn(sentences, beams, generator=chance)


@given(st.integers(1, 4), st.integers(1, 5), sizes, st.integers(1, 12), st.integers(0, 99))
def test_the_best_are_those_of_a_full_sort(sentences, beams, tokens, count, seed):
    scores, likely = scored(sentences, beams, tokens, seed)
    totals, parents, chosen = best(scores, likely, count)
    everything, numbers = (likely[..., None] + scores).flatten(1), parents * tokens + chosen
    assert torch.equal(totals, everything.sort(dim=1, descending=True).values[:, :count])
    assert torch.equal(totals, everything.gather(1, numbers))
    assert all(len(set(row)) == len(row) for row in numbers.tolist())


@given(sizes, st.integers(0, 99))
def test_equal_scores_are_each_given_once(tokens, seed):
    scores, likely = scored(2, 3, tokens, seed, spread=0.0)
    _, parents, chosen = best(scores, torch.zeros_like(likely), 9)
    for sentence in (parents * tokens + chosen).tolist():
        assert len(set(sentence)) == len(sentence) == min(9, 3 * tokens)


@pytest.mark.parametrize("allowed", [3, GROUP + 5])
def test_tokens_that_are_ruled_out_come_last(allowed):
    scores, likely = scored(2, 2, 4 * GROUP, 0)
    scores[..., allowed:] = -torch.inf
    totals, _, chosen = best(scores, likely, 10)
    finite = totals.isfinite()
    assert finite.sum(dim=1).tolist() == [min(10, 2 * allowed)] * 2
    assert (chosen[finite] < allowed).all()


def test_only_the_best_groups_are_sorted():
    """What makes it fast: of 100 groups, no more than are asked for."""
    scores, likely = scored(2, 5, 100 * GROUP, 0)
    assert topk._worth_ranking(scores, likely, 10).shape == (2, 10 * GROUP)
