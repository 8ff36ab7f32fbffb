import pytest
import torch

from regard.attention import BeamTree, KVCache, MultiHeadAttention
from regard.masks import causal
from regard.models import FeedForward, Layer

BATCH, LENGTH, WIDTH = 2, 5, 12


def make(cross=False, pre=False):
    return Layer(
        MultiHeadAttention(WIDTH, 3),
        FeedForward(WIDTH, 20),
        MultiHeadAttention(WIDTH, 3) if cross else None,
        pre_norm=pre,
    ).eval()


@pytest.mark.parametrize("pre", [True, False])
def test_a_layer_is_what_the_paper_writes(pre):
    layer, rows = make(cross=True, pre=pre), torch.randn(BATCH, LENGTH, WIDTH)
    source = torch.randn(BATCH, 4, WIDTH)
    memory = layer.cross.project_kv(source)

    def around(residual, rows, change):
        if pre:
            return rows + change(residual.norm(rows))
        return residual.norm(rows + change(rows))

    expected = around(layer.around_attention, rows, layer.attention)
    expected = around(layer.around_cross, expected, lambda rows: layer.cross(rows, source))
    expected = around(layer.around_feed_forward, expected, layer.feed_forward)
    torch.testing.assert_close(layer(rows, source=memory), expected)


def test_steps_give_what_all_rows_at_once_give():
    layer, rows = make(), torch.randn(BATCH, LENGTH, WIDTH)
    cache, states, branches = KVCache(), [], BeamTree.begin(BATCH, rows.device)
    for row in rows.split(1, dim=1):
        branches = branches.grow(1)
        state, cache = layer.step(row, cache, branches)
        states.append(state)
    torch.testing.assert_close(torch.cat(states, dim=1), layer(rows, causal()))


def test_both_kinds_of_looks_are_noted_apart():
    layer, rows = make(cross=True), torch.randn(BATCH, LENGTH, WIDTH)
    memory = layer.cross.project_kv(torch.randn(BATCH, 4, WIDTH))
    own, crossed = [], []
    looked = layer(rows, source=memory, notes=(own, crossed))
    assert torch.equal(looked, layer(rows, source=memory))
    assert own[0].shape == (BATCH, 3, LENGTH, LENGTH)
    assert crossed[0].shape == (BATCH, 3, LENGTH, 4)


def test_a_layer_with_cross_attention_needs_a_source():
    """Without one it would look at its own rows, those to come among them."""
    layer = Layer(MultiHeadAttention(8, 2), FeedForward(8, 12), MultiHeadAttention(8, 2)).eval()
    rows = torch.randn(2, 3, 8)
    with pytest.raises(ValueError, match="needs a source to look at, but none was given"):
        layer(rows, causal())
    with pytest.raises(ValueError, match="needs a source to look at, but none was given"):
        layer.step(rows[:, :1], KVCache(), BeamTree.begin(2, rows.device).grow(1))
