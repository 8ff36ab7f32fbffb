import pytest
import torch
from torch import nn

from regard.attention import MultiHeadAttention
from regard.masks import causal, from_hf, from_torch, lengths

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12


def hidden(*shape):
    """Hide some pairs, torch's way round, but leave a key to every query."""
    pairs = torch.rand(shape) > 0.5
    pairs[..., 0] = False
    return pairs


def added(pairs):
    """Write hidden pairs as numbers to add."""
    return torch.zeros(pairs.shape).masked_fill(pairs, -torch.inf)


def agrees_with_torch(attn_mask, key_padding_mask, heads=None):
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
    queries, keys = torch.randn(BATCH, QUERIES, WIDTH), torch.randn(BATCH, KEYS, WIDTH)
    context, weights = theirs(
        queries,
        keys,
        keys,
        attn_mask=attn_mask,
        key_padding_mask=key_padding_mask,
        average_attn_weights=False,
    )
    ours = MultiHeadAttention.from_torch(theirs)
    looked = ours.look(queries, keys, mask=from_torch(attn_mask, key_padding_mask, heads))
    torch.testing.assert_close(looked.context, context)
    torch.testing.assert_close(looked.weights, weights)


@pytest.mark.parametrize("form", [lambda pairs: pairs, added], ids=["bool", "float"])
def test_torch_masks_hide_what_they_hide_in_torch(form):
    pairs, per_head = hidden(QUERIES, KEYS), hidden(BATCH * HEADS, QUERIES, KEYS)
    pad = hidden(BATCH, KEYS)
    agrees_with_torch(form(pairs), None)
    agrees_with_torch(None, form(pad))
    agrees_with_torch(form(pairs), form(pad))
    agrees_with_torch(form(per_head), None, heads=HEADS)
    agrees_with_torch(form(per_head), form(pad), heads=HEADS)


def test_padding_of_one_sentence_hides_what_it_hides_in_torch():
    theirs = nn.MultiheadAttention(WIDTH, HEADS).eval()
    rows, pad = torch.randn(KEYS, WIDTH), hidden(KEYS)
    context, weights = theirs(rows, rows, rows, key_padding_mask=pad, average_attn_weights=False)
    looked = MultiHeadAttention.from_torch(theirs).look(rows, mask=from_torch(key_padding_mask=pad))
    torch.testing.assert_close(looked.context, context)
    torch.testing.assert_close(looked.weights, weights)


def test_the_causal_mask_of_torch_is_causal():
    theirs = nn.Transformer.generate_square_subsequent_mask(KEYS)
    assert from_torch(theirs).to_tensor(KEYS).equal(causal().to_tensor(KEYS))


def test_no_masks_are_no_mask():
    assert from_torch() is None


def test_torch_masks_are_not_modified():
    pairs, pad = hidden(QUERIES, KEYS), added(hidden(BATCH, KEYS))
    before = pairs.clone(), pad.clone()
    from_torch(pairs, pad).to_tensor(QUERIES, KEYS, (BATCH,))
    assert pairs.equal(before[0])
    assert pad.equal(before[1])


@pytest.mark.parametrize("dtype", [torch.long, torch.bool, torch.float32])
def test_a_hugging_face_mask_of_two_axes_keeps_where_it_is_one(dtype):
    keep = torch.tensor([[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0]]).to(dtype)
    want = lengths([3, 6]).to_tensor(QUERIES, KEYS, (BATCH, HEADS))
    assert from_hf(keep).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(want)


def test_padding_on_the_left_stays_there():
    keep = from_hf(torch.tensor([[0, 0, 1], [0, 1, 1]])).to_tensor(1, 3, (2,))
    assert keep.tolist() == [[[False, False, True]], [[False, True, True]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("heads", [1, HEADS])
def test_a_hugging_face_mask_of_four_axes_hides_with_the_lowest_number(dtype, heads):
    pairs = hidden(BATCH, heads, QUERIES, KEYS)
    for lowest in (torch.finfo(dtype).min, -torch.inf):
        numbers = torch.zeros(pairs.shape, dtype=dtype).masked_fill(pairs, lowest)
        seen = from_hf(numbers).to_tensor(QUERIES, KEYS, (BATCH, HEADS))
        assert seen.equal((~pairs).expand(seen.shape))


def test_a_boolean_hugging_face_mask_of_four_axes_shows_where_it_is_true():
    pairs = hidden(BATCH, 1, QUERIES, KEYS)
    seen = from_hf(pairs).to_tensor(QUERIES, KEYS, (BATCH, HEADS))
    assert seen.equal(pairs.expand(seen.shape))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: from_torch(torch.full((5, 7), 0.5)), ValueError, "attn_mask.*0 and -inf.*bias="),
        (
            lambda: from_torch(key_padding_mask=torch.tensor([[torch.nan, 0.0]])),
            ValueError,
            "key_padding_mask must hold only 0 and -inf",
        ),
        (
            lambda: from_torch(torch.ones(5, 7).long()),
            TypeError,
            r"attn_mask must be boolean or float.*int64; attn_mask\.bool\(\) would do",
        ),
        (lambda: from_torch(hidden(6, 5, 7)), ValueError, "needs heads= to part it.*None.*6"),
        (lambda: from_torch(hidden(6, 5, 7), heads=4), ValueError, "heads is 4.*first axis 6"),
        (lambda: from_hf(hidden(2, 5, 7)), ValueError, r"\(batch, key\) or.*\(2, 5, 7\)"),
        (lambda: from_hf(torch.tensor([[1, 1, 2, 2]])), ValueError, "1 to keep.*documents"),
        (lambda: from_hf(added(hidden(2, 7))), ValueError, "0 to hide, but it holds other.*bias="),
        (lambda: from_hf(torch.full((1, 1, 5, 7), 0.5)), ValueError, "attention_mask.*-inf"),
        (lambda: from_hf(torch.ones(1, 1, 5, 7).long()), TypeError, r"attention_mask\.bool\(\)"),
    ],
)
def test_what_cannot_be_read_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
