import pytest
import torch

from regard.attention import SCORE_NAMES, BeamTree, KVCache, MultiHeadAttention
from regard.attention.beam_cache import MIN_PRUNED_KEYS
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
    branches = BeamTree.begin(SENTENCES, torch.device("cpu")).grow(1)
    for parents in PARENTS:
        rows = counted_over_all(parents, branches.visible.shape[1])
        branches = branches.reorder(rows, SENTENCES).grow(3)
    return branches


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("key_heads", [2, 6])
@pytest.mark.parametrize("positions", [None, "rotary", "alibi"])
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_each_continuation_looks_as_if_it_were_alone(score, positions, key_heads, forgets):
    made = {"rotary": Rotary(4), "alibi": ALiBi(HEADS), None: None}[positions]
    attention = MultiHeadAttention(
        WIDTH, HEADS, key_heads=key_heads, score=score, positions=made
    ).eval()
    row = torch.randn(SENTENCES, 1, WIDTH)
    branches = BeamTree.begin(SENTENCES, row.device).grow(1)
    context, cache = attention.attend_beams(row, KVCache(), branches)
    texts = row[:, :, None]  # (sentence, continuation, position, width)
    torch.testing.assert_close(context, attention(texts[:, 0]))
    for parents in PARENTS:
        rows = counted_over_all(parents, texts.shape[1])
        new = torch.randn(SENTENCES, 3, WIDTH)
        branches = branches.reorder(rows, SENTENCES)
        if forgets:
            branches, keys = branches.pruned()
            cache = cache.select(torch.arange(SENTENCES), keys)
        branches = branches.grow(3)
        context, cache = attention.attend_beams(new, cache, branches)
        before = texts.flatten(0, 1)[rows].unflatten(0, (SENTENCES, 3))
        texts = torch.cat([before, new[:, :, None]], dim=2)
        alone = attention(texts.flatten(0, 1), mask=causal())[:, -1]
        torch.testing.assert_close(context.flatten(0, 1), alone)


@pytest.mark.parametrize("branches", [grown(), grown().pruned()[0]])
def test_each_continuation_sees_one_key_at_each_position(branches):
    assert branches.steps == 5
    for position in range(branches.steps):
        at_it = branches.visible & (branches.positions == position)[:, None]
        assert torch.equal(at_it.sum(-1), torch.ones(SENTENCES, 3, dtype=torch.long))


def test_what_no_continuation_sees_is_forgotten_and_the_rest_stays_in_order():
    before = grown()
    after, keys = before.pruned()
    alive = [row.nonzero().flatten().tolist() for row in before.visible.any(1)]
    most = max(map(len, alive))
    assert most < before.visible.shape[-1] and keys.shape == (SENTENCES, most)
    for sentence, kept in enumerate(alive):
        assert keys[sentence, : len(kept)].tolist() == kept
        assert torch.equal(after.visible[sentence], before.visible[sentence][:, keys[sentence]])
        assert torch.equal(after.positions[sentence], before.positions[sentence][keys[sentence]])


def test_it_is_crowded_when_there_are_twice_as_many_keys_as_were_left():
    branches = BeamTree.begin(SENTENCES, torch.device("cpu"))
    while not branches.should_prune:
        branches = branches.grow(3)
    assert 2 * MIN_PRUNED_KEYS <= branches.visible.shape[-1] < 2 * MIN_PRUNED_KEYS + 3
    alone = torch.zeros(3 * SENTENCES, dtype=torch.long)
    alone[3:] = 3
    pruned, keys = branches.reorder(alone, SENTENCES).pruned()
    assert not pruned.should_prune and keys.shape[1] == branches.steps
    assert pruned.grow(3).pruned_to == MIN_PRUNED_KEYS
    everyone, keys = branches.pruned()
    assert keys.shape[1] == branches.visible.shape[-1] and not everyone.should_prune


def test_whoever_is_alone_is_never_crowded():
    branches = BeamTree.begin(1, torch.device("cpu"))
    for _ in range(5 * MIN_PRUNED_KEYS):
        branches = branches.grow(1)
    assert not branches.should_prune


def test_sentences_that_go_on_keep_the_places_of_their_keys():
    branches, _ = grown().pruned()
    gone_on = branches.reorder(torch.tensor([4, 3]), 1)
    assert torch.equal(gone_on.positions, branches.positions[1:])
    assert torch.equal(gone_on.visible, branches.visible[1:, [1, 0]])


def test_a_new_key_is_seen_by_its_own_continuation_alone():
    newest = grown().visible[..., -3:]
    assert torch.equal(newest, torch.eye(3, dtype=torch.bool).expand(SENTENCES, -1, -1))


def test_whoever_goes_on_alone_needs_no_mask():
    branches = BeamTree.begin(SENTENCES, torch.device("cpu")).grow(1).grow(1)
    assert branches.mask is None
    assert branches.visible.all()
    assert branches.grow(2).mask is not None


def test_whoever_stays_after_a_parting_still_does_not_see_the_others_keys():
    branches = grown().reorder(torch.tensor([1, 5]), SENTENCES).grow(1)
    assert branches.mask.shape == (SENTENCES, 1, 1 + 4 * 3 + 1)
    assert torch.equal(branches.mask.sum(-1), torch.full((SENTENCES, 1), 6))


def test_when_no_sentence_goes_on_no_one_sees_anything():
    assert grown().reorder(torch.zeros(0, dtype=torch.long), 0).visible.shape[0] == 0


def test_no_key_is_moved_when_continuations_change_places():
    attention = MultiHeadAttention(WIDTH, HEADS).eval()
    branches = BeamTree.begin(SENTENCES, torch.device("cpu")).grow(3)
    with torch.no_grad():
        _, cache = attention.attend_beams(torch.randn(SENTENCES, 3, WIDTH), KVCache(), branches)
        branches = branches.reorder(torch.tensor([2, 1, 0, 3, 3, 3]), SENTENCES).grow(3)
        _, cache = attention.attend_beams(torch.randn(SENTENCES, 3, WIDTH), cache, branches)
        before = cache.keys.data_ptr()
        branches = branches.reorder(torch.tensor([0, 0, 0, 5, 4, 3]), SENTENCES).grow(3)
        _, cache = attention.attend_beams(torch.randn(SENTENCES, 3, WIDTH), cache, branches)
    assert cache.keys.data_ptr() == before
