import numpy as np
import pytest
import torch
from torch import nn

from regard import RegardError, masks, watch
from regard.attention import KVCache, MultiHeadAttention
from regard.trace import TokenList


class Both(nn.Module):
    """An encoder and a decoder of one layer each."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.cross = (MultiHeadAttention(12, 3) for _ in range(3))

    def forward(self, source, target, lengths=None):
        mask = None if lengths is None else masks.lengths(lengths)
        read = self.encoder(source, mask=mask)
        return self.cross(self.decoder(target, mask=masks.causal()), read, mask=mask)


def watched(model, *args, **kwargs):
    with torch.no_grad(), watch(model, **kwargs) as seen:
        model(*args)
    return seen


def test_a_translator_has_a_source_and_a_target():
    seen = watched(Both(), torch.randn(2, 7, 12), torch.randn(2, 5, 12))
    trace = seen.trace(
        list("abcdefg"), list("vwxyz"), batch_index=1, title="a title", gold=[(1, 2)]
    )
    sides = [(look.kind, look.queries, look.keys) for look in trace.maps]
    assert sides == [
        ("self", "source", "source"),
        ("causal", "target", "target"),
        ("cross", "target", "source"),
    ]
    assert (trace.title, trace.model, trace.gold) == ("a title", "Both", ((1, 2),))
    np.testing.assert_array_equal(trace.maps[2].weights, seen.weights("cross")[1].numpy())


def test_equally_long_sides_are_told_apart():
    seen = watched(Both(), torch.randn(2, 5, 12), torch.randn(2, 5, 12))
    sides = [look.queries for look in seen.trace().maps]
    assert sides == ["source", "target", "target"]


def test_tokens_that_are_not_given_are_numbers():
    trace = watched(Both(), torch.randn(2, 7, 12), torch.randn(2, 5, 12)).trace()
    assert trace.tokens["target"].pieces == ("0", "1", "2", "3", "4")
    trace = watched(MultiHeadAttention(12, 3), torch.randn(2, 3, 12)).trace()
    assert trace.tokens["text"].pieces == ("0", "1", "2")


def test_one_text_is_called_text():
    trace = watched(MultiHeadAttention(12, 3), torch.randn(2, 3, 12)).trace(["a", "b", "c"])
    assert set(trace.tokens) == {"text"}
    assert trace.maps[0].value_norms.shape == (3, 3)


@pytest.mark.parametrize("keep", ["all", "reduced"])
def test_padding_is_what_nobody_looks_at(keep):
    model = Both()
    seen = watched(model, torch.randn(2, 7, 12), torch.randn(2, 5, 12), [7, 4], keep=keep)
    assert seen.trace(batch_index=1).tokens["source"].padding == (4, 5, 6)
    assert seen.trace(batch_index=0).tokens["source"].padding == ()
    own = TokenList(tuple("abcdefg"), padding=(6,))
    assert seen.trace(own, batch_index=1).tokens["source"].padding == (6,)


def test_a_token_list_of_the_wrong_length_is_refused():
    seen = watched(Both(), torch.randn(2, 7, 12), torch.randn(2, 5, 12))
    with pytest.raises(ValueError, match="encoder has 7 queries, but there are 6 source tokens"):
        seen.trace(list("abcdef"), list("vwxyz"))
    with pytest.raises(ValueError, match="decoder has 5 queries, but there are 9 target tokens"):
        seen.trace(list("abcdefg"), list("abcdefghi"))


def test_a_sentence_beyond_the_batch_is_refused():
    seen = watched(MultiHeadAttention(12, 3), torch.randn(2, 3, 12))
    with pytest.raises(RegardError, match="batch_index must be from 0 to 1"):
        seen.trace(batch_index=2)
    with pytest.raises(RegardError, match="no module looked in a call 3"):
        seen.trace(call=3)


@pytest.mark.parametrize("keep", ["all", "reduced"])
def test_rows_before_watching_began_are_empty(keep):
    model, rows = MultiHeadAttention(12, 3), torch.randn(1, 6, 12)
    with torch.no_grad():
        _, cache = model.step(rows[:, :4], KVCache())
        with watch(model, keep=keep) as seen:
            for n in (4, 5):
                _, cache = model.step(rows[:, n : n + 1], cache)
    look = seen.trace(list("abcdef")).maps[0]
    assert look.shape == (3, 6, 6)
    rows = look.weights if keep == "all" else look.summary.top_weights
    assert not rows[:, :4].any() and rows[:, 4:].any(-1).all()


def test_texts_of_several_lengths_have_lists_of_their_own():
    model = MultiHeadAttention(12, 3)
    with watch(model) as seen:
        model(torch.randn(2, 3, 12))
        model(torch.randn(2, 4, 12))
    trace = seen.trace()
    assert {name: len(tokens) for name, tokens in trace.tokens.items()} == {
        "text": 3,
        "text of 4": 4,
    }
    assert seen.trace(list("abcd"), call=1).maps[0].shape == (3, 4, 4)


class Sharp(nn.Module):
    """Looks so sharply that other weights are exactly 0."""

    def __init__(self, by_hand):
        super().__init__()
        self.by_hand = by_hand

    def forward(self, rows, may_look=None):
        if not self.by_hand:
            mask = None if may_look is None else may_look[:, None, None]
            return nn.functional.scaled_dot_product_attention(rows, rows, rows, mask)
        scores = rows @ rows.mT
        if may_look is not None:
            scores = scores.masked_fill(~may_look[:, None, None], torch.finfo(scores.dtype).min)
        return scores.softmax(-1) @ rows


@pytest.mark.parametrize("by_hand", [False, True])
def test_padding_is_what_a_mask_hides(by_hand):
    rows = torch.zeros(2, 1, 5, 12)
    rows[..., 0] = torch.tensor([1.0, 2, 3, 4, 5]) * 100  # all look at the last one
    model = Sharp(by_hand)
    assert watched(model, rows).trace().tokens["text"].padding == ()
    rows = torch.randn(2, 1, 5, 12)
    seen = watched(model, rows, torch.arange(5) < torch.tensor([[3], [5]]))
    assert seen.trace(batch_index=0).tokens["text"].padding == (3, 4)
    assert seen.trace(batch_index=1).tokens["text"].padding == ()
