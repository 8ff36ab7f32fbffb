"""Two-stage top-k."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.topk import GROUP_SIZE, grouped_topk

sizes = st.sampled_from(
    [1, 2, GROUP_SIZE - 1, GROUP_SIZE, GROUP_SIZE + 1, 3 * GROUP_SIZE, 5 * GROUP_SIZE + 7]
)


def random_scores(batch, beams, tokens, seed, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    log_probs = spread * torch.randn(batch, beams, tokens, generator=generator)
    return log_probs, torch.randn(batch, beams, generator=generator)


@given(st.integers(1, 4), st.integers(1, 5), sizes, st.integers(1, 12), st.integers(0, 99))
def test_candidates_are_those_of_a_full_sort(batch, beams, tokens, k, seed):
    log_probs, beam_scores = random_scores(batch, beams, tokens, seed)
    scores, beam_indices, chosen, token_log_probs = grouped_topk(log_probs, beam_scores, k)
    everything = (beam_scores[..., None] + log_probs).flatten(1)
    indices = beam_indices * tokens + chosen
    assert torch.equal(scores, everything.sort(dim=1, descending=True).values[:, :k])
    assert torch.equal(scores, everything.gather(1, indices))
    assert torch.equal(token_log_probs, log_probs.flatten(1).gather(1, indices))
    assert all(len(set(row)) == len(row) for row in indices.tolist())


@given(sizes, st.integers(0, 99))
def test_candidates_of_equal_score_are_distinct(tokens, seed):
    log_probs, beam_scores = random_scores(2, 3, tokens, seed, spread=0.0)
    candidates = grouped_topk(log_probs, torch.zeros_like(beam_scores), 9)
    for row in (candidates.beam_indices * tokens + candidates.tokens).tolist():
        assert len(set(row)) == len(row) == min(9, 3 * tokens)


@pytest.mark.parametrize("allowed", [3, GROUP_SIZE + 5])
def test_masked_tokens_come_last(allowed):
    log_probs, beam_scores = random_scores(2, 2, 4 * GROUP_SIZE, 0)
    log_probs[..., allowed:] = -torch.inf
    candidates = grouped_topk(log_probs, beam_scores, 10)
    finite = candidates.scores.isfinite()
    assert finite.sum(dim=1).tolist() == [min(10, 2 * allowed)] * 2
    assert (candidates.tokens[finite] < allowed).all()
