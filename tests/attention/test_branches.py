import pytest
import torch

from regard.attention import NAMES, Branches, Cache, MultiHead
from regard.masks import causal
from regard.positions import ALiBi, Rotary

SENTENCES, WIDTH, HEADS = 2, 24, 6
PARENTS = (  # who goes on from whom, sentence by sentence, before each step after the first
    torch.tensor([[0, 0, 0], [0, 0, 0]]),
    torch.tensor([[2, 0, 0], [1, 1, 1]]),
    torch.tensor([[0, 1, 2], [2, 0, 1]]),
    torch.tensor([[1, 1, 0], [0, 2, 2]]),
)


def counted_over_all(parents, continuations):
    """Number parents over all sentences, as branches take them."""
    first = torch.arange(len(parents))[:, None] * continuations
    return (first + parents).flatten()


def grown():
    """Take a step for one continuation of each sentence, then one for three after each parting."""
    branches = Branches.begin(SENTENCES, torch.device("cpu")).grow(1)
    for parents in PARENTS:
        rows = counted_over_all(parents, branches.seen.shape[1])
        branches = branches.reorder(rows, SENTENCES).grow(3)
    return branches


@pytest.mark.parametrize("key_heads", [2, 6])
@pytest.mark.parametrize("positions", [None, "rotary", "alibi"])
@pytest.mark.parametrize("score", NAMES)
def test_each_continuation_looks_as_if_it_were_alone(score, positions, key_heads):
    made = {"rotary": Rotary(4), "alibi": ALiBi(HEADS), None: None}[positions]
    attention = MultiHead(WIDTH, HEADS, key_heads=key_heads, score=score, positions=made).eval()
    row = torch.randn(SENTENCES, 1, WIDTH)
    branches = Branches.begin(SENTENCES, row.device).grow(1)
    context, cache = attention.branch(row, Cache(), branches)
    texts = row[:, :, None]  # (sentence, continuation, position, width)
    torch.testing.assert_close(context, attention(texts[:, 0]))
    for parents in PARENTS:
        rows = counted_over_all(parents, texts.shape[1])
        new = torch.randn(SENTENCES, 3, WIDTH)
        branches = branches.reorder(rows, SENTENCES).grow(3)
        context, cache = attention.branch(new, cache, branches)
        before = texts.flatten(0, 1)[rows].unflatten(0, (SENTENCES, 3))
        texts = torch.cat([before, new[:, :, None]], dim=2)
        alone = attention(texts.flatten(0, 1), mask=causal())[:, -1]
        torch.testing.assert_close(context.flatten(0, 1), alone)


def test_each_continuation_sees_one_key_at_each_position():
    branches = grown()
    assert branches.steps == 5
    for position in range(branches.steps):
        at_it = branches.seen[..., branches.places == position]
        assert torch.equal(at_it.sum(-1), torch.ones(SENTENCES, 3, dtype=torch.long))


def test_a_new_key_is_seen_by_its_own_continuation_alone():
    newest = grown().seen[..., -3:]
    assert torch.equal(newest, torch.eye(3, dtype=torch.bool).expand(SENTENCES, -1, -1))


def test_whoever_goes_on_alone_needs_no_mask():
    branches = Branches.begin(SENTENCES, torch.device("cpu")).grow(1).grow(1)
    assert branches.mask is None
    assert branches.seen.all()
    assert branches.grow(2).mask is not None


def test_whoever_stays_after_a_parting_still_does_not_see_the_others_keys():
    branches = grown().reorder(torch.tensor([1, 5]), SENTENCES).grow(1)
    assert branches.mask.shape == (SENTENCES, 1, 1 + 4 * 3 + 1)
    assert torch.equal(branches.mask.sum(-1), torch.full((SENTENCES, 1), 6))


def test_when_no_sentence_goes_on_no_one_sees_anything():
    assert grown().reorder(torch.zeros(0, dtype=torch.long), 0).seen.shape[0] == 0


def test_no_key_is_moved_when_continuations_change_places():
    attention = MultiHead(WIDTH, HEADS).eval()
    branches = Branches.begin(SENTENCES, torch.device("cpu")).grow(3)
    with torch.no_grad():
        _, cache = attention.branch(torch.randn(SENTENCES, 3, WIDTH), Cache(), branches)
        branches = branches.reorder(torch.tensor([2, 1, 0, 3, 3, 3]), SENTENCES).grow(3)
        _, cache = attention.branch(torch.randn(SENTENCES, 3, WIDTH), cache, branches)
        before = cache.keys.data_ptr()
        branches = branches.reorder(torch.tensor([0, 0, 0, 5, 4, 3]), SENTENCES).grow(3)
        _, cache = attention.branch(torch.randn(SENTENCES, 3, WIDTH), cache, branches)
    assert cache.keys.data_ptr() == before
