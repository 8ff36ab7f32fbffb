import pytest
import torch

from regard.attention import SCORE_NAMES, BeamTree, KVCache, MultiHeadAttention
from regard.attention.beam_cache import MIN_PRUNED_KEYS
from regard.masks import causal
from regard.positions import ALiBi, Rotary

BATCH, WIDTH, HEADS = 2, 24, 6
PARENTS = (  # the beam that each beam continues, by batch item, before each step after the first
    torch.tensor([[0, 0, 0], [0, 0, 0]]),
    torch.tensor([[2, 0, 0], [1, 1, 1]]),
    torch.tensor([[0, 1, 2], [2, 0, 1]]),
    torch.tensor([[1, 1, 0], [0, 2, 2]]),
)


def flat_rows(parents, beams):
    """Count parents over the whole batch, as `reorder` takes them."""
    first = torch.arange(len(parents))[:, None] * beams
    return (first + parents).flatten()


def grow_tree():
    """Take a step with one beam per batch item, then steps with three."""
    tree = BeamTree.begin(BATCH, torch.device("cpu")).grow(1)
    for parents in PARENTS:
        rows = flat_rows(parents, tree.visible.shape[1])
        tree = tree.reorder(rows, BATCH).grow(3)
    return tree


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("key_heads", [2, 6])
@pytest.mark.parametrize("positions", [None, "rotary", "alibi"])
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_each_beam_attends_as_if_it_were_alone(score, positions, key_heads, prune):
    module = {"rotary": Rotary(4), "alibi": ALiBi(HEADS), None: None}[positions]
    attention = MultiHeadAttention(
        WIDTH, HEADS, key_heads=key_heads, score=score, positions=module
    ).eval()
    row = torch.randn(BATCH, 1, WIDTH)
    tree = BeamTree.begin(BATCH, row.device).grow(1)
    context, cache = attention.attend_beams(row, KVCache(), tree)
    texts = row[:, :, None]  # (batch, beam, position, width)
    torch.testing.assert_close(context, attention(texts[:, 0]))
    for parents in PARENTS:
        rows = flat_rows(parents, texts.shape[1])
        new = torch.randn(BATCH, 3, WIDTH)
        tree = tree.reorder(rows, BATCH)
        if prune:
            tree, keys = tree.pruned()
            cache = cache.select(torch.arange(BATCH), keys)
        tree = tree.grow(3)
        context, cache = attention.attend_beams(new, cache, tree)
        before = texts.flatten(0, 1)[rows].unflatten(0, (BATCH, 3))
        texts = torch.cat([before, new[:, :, None]], dim=2)
        expected = attention(texts.flatten(0, 1), mask=causal())[:, -1]
        torch.testing.assert_close(context.flatten(0, 1), expected)


@pytest.mark.parametrize("tree", [grow_tree(), grow_tree().pruned()[0]])
def test_each_beam_sees_one_key_at_each_position(tree):
    assert tree.steps == 5
    for position in range(tree.steps):
        visible = tree.visible & (tree.positions == position)[:, None]
        assert torch.equal(visible.sum(-1), torch.ones(BATCH, 3, dtype=torch.long))


def test_pruning_drops_keys_that_no_beam_sees_and_keeps_the_order():
    before = grow_tree()
    after, keys = before.pruned()
    used = [row.nonzero().flatten().tolist() for row in before.visible.any(1)]
    count = max(map(len, used))
    assert count < before.visible.shape[-1] and keys.shape == (BATCH, count)
    for item, expected in enumerate(used):
        assert keys[item, : len(expected)].tolist() == expected
        assert torch.equal(after.visible[item], before.visible[item][:, keys[item]])
        assert torch.equal(after.positions[item], before.positions[item][keys[item]])


def test_pruning_is_due_at_twice_the_keys_of_the_last_pruning():
    tree = BeamTree.begin(BATCH, torch.device("cpu"))
    while not tree.should_prune:
        tree = tree.grow(3)
    assert 2 * MIN_PRUNED_KEYS <= tree.visible.shape[-1] < 2 * MIN_PRUNED_KEYS + 3
    rows = torch.zeros(3 * BATCH, dtype=torch.long)  # all continue the first beam
    rows[3:] = 3
    pruned, keys = tree.reorder(rows, BATCH).pruned()
    assert not pruned.should_prune and keys.shape[1] == tree.steps
    assert pruned.grow(3).pruned_to == MIN_PRUNED_KEYS
    unpruned, keys = tree.pruned()
    assert keys.shape[1] == tree.visible.shape[-1] and not unpruned.should_prune


def test_single_beam_is_never_pruned():
    tree = BeamTree.begin(1, torch.device("cpu"))
    for _ in range(5 * MIN_PRUNED_KEYS):
        tree = tree.grow(1)
    assert not tree.should_prune


def test_batch_items_that_continue_keep_the_positions_of_their_keys():
    tree, _ = grow_tree().pruned()
    reordered = tree.reorder(torch.tensor([4, 3]), 1)
    assert torch.equal(reordered.positions, tree.positions[1:])
    assert torch.equal(reordered.visible, tree.visible[1:, [1, 0]])


def test_new_key_is_visible_to_its_own_beam_alone():
    newest = grow_tree().visible[..., -3:]
    assert torch.equal(newest, torch.eye(3, dtype=torch.bool).expand(BATCH, -1, -1))


def test_single_beam_needs_no_mask():
    tree = BeamTree.begin(BATCH, torch.device("cpu")).grow(1).grow(1)
    assert tree.mask is None
    assert tree.visible.all()
    assert tree.grow(2).mask is not None


def test_single_beam_left_does_not_see_keys_of_dropped_beams():
    tree = grow_tree().reorder(torch.tensor([1, 5]), BATCH).grow(1)
    assert tree.mask.shape == (BATCH, 1, 1 + 4 * 3 + 1)
    assert torch.equal(tree.mask.sum(-1), torch.full((BATCH, 1), 6))


def test_reorder_to_an_empty_batch_is_empty():
    assert grow_tree().reorder(torch.zeros(0, dtype=torch.long), 0).visible.shape[0] == 0


def test_reordering_beams_moves_no_key():
    attention = MultiHeadAttention(WIDTH, HEADS).eval()
    tree = BeamTree.begin(BATCH, torch.device("cpu")).grow(3)
    with torch.no_grad():
        _, cache = attention.attend_beams(torch.randn(BATCH, 3, WIDTH), KVCache(), tree)
        tree = tree.reorder(torch.tensor([2, 1, 0, 3, 3, 3]), BATCH).grow(3)
        _, cache = attention.attend_beams(torch.randn(BATCH, 3, WIDTH), cache, tree)
        before = cache.keys.data_ptr()
        tree = tree.reorder(torch.tensor([0, 0, 0, 5, 4, 3]), BATCH).grow(3)
        _, cache = attention.attend_beams(torch.randn(BATCH, 3, WIDTH), cache, tree)
    assert cache.keys.data_ptr() == before
