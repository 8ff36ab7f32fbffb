import pytest
import torch
from torch import nn

from regard.attention import MultiHeadAttention
from regard.errors import RegardError
from regard.masks import causal, from_hf, from_torch, lengths

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12


def random_torch_mask(*shape):
    """Draw a mask in torch's convention, True to mask, with a key left to every query."""
    mask = torch.rand(shape) > 0.5
    mask[..., 0] = False
    return mask


def to_float(mask):
    """Convert a boolean torch mask to an additive one."""
    return torch.zeros(mask.shape).masked_fill(mask, -torch.inf)


def check_agreement(attn_mask, key_padding_mask, heads=None):
    module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
    queries, keys = torch.randn(BATCH, QUERIES, WIDTH), torch.randn(BATCH, KEYS, WIDTH)
    context, weights = module(
        queries,
        keys,
        keys,
        attn_mask=attn_mask,
        key_padding_mask=key_padding_mask,
        average_attn_weights=False,
    )
    mask = from_torch(attn_mask, key_padding_mask, heads)
    output = MultiHeadAttention.from_torch(module).look(queries, keys, mask=mask)
    torch.testing.assert_close(output.context, context)
    torch.testing.assert_close(output.weights, weights)


@pytest.mark.parametrize("form", [lambda mask: mask, to_float], ids=["bool", "float"])
def test_from_torch_masks_what_torch_masks(form):
    pairs, per_head = (
        random_torch_mask(QUERIES, KEYS),
        random_torch_mask(BATCH * HEADS, QUERIES, KEYS),
    )
    pad = random_torch_mask(BATCH, KEYS)
    check_agreement(form(pairs), None)
    check_agreement(None, form(pad))
    check_agreement(form(pairs), form(pad))
    check_agreement(form(per_head), None, heads=HEADS)
    check_agreement(form(per_head), form(pad), heads=HEADS)


def test_from_torch_padding_without_batch_check_agreement():
    module = nn.MultiheadAttention(WIDTH, HEADS).eval()
    rows, pad = torch.randn(KEYS, WIDTH), random_torch_mask(KEYS)
    context, weights = module(rows, rows, rows, key_padding_mask=pad, average_attn_weights=False)
    mask = from_torch(key_padding_mask=pad)
    output = MultiHeadAttention.from_torch(module).look(rows, mask=mask)
    torch.testing.assert_close(output.context, context)
    torch.testing.assert_close(output.weights, weights)


def test_from_torch_of_torchs_causal_mask_is_causal():
    mask = nn.Transformer.generate_square_subsequent_mask(KEYS)
    assert from_torch(mask).to_tensor(KEYS).equal(causal().to_tensor(KEYS))


def test_from_torch_without_masks_is_none():
    assert from_torch() is None


def test_from_torch_does_not_modify_the_masks():
    pairs, pad = random_torch_mask(QUERIES, KEYS), to_float(random_torch_mask(BATCH, KEYS))
    before = pairs.clone(), pad.clone()
    from_torch(pairs, pad).to_tensor(QUERIES, KEYS, (BATCH,))
    assert pairs.equal(before[0])
    assert pad.equal(before[1])


@pytest.mark.parametrize("dtype", [torch.long, torch.bool, torch.float32])
def test_from_hf_of_two_axes_attends_where_it_is_one(dtype):
    keep = torch.tensor([[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 0]]).to(dtype)
    expected = lengths([3, 6]).to_tensor(QUERIES, KEYS, (BATCH, HEADS))
    assert from_hf(keep).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(expected)


def test_from_hf_keeps_left_padding():
    keep = from_hf(torch.tensor([[0, 0, 1], [0, 1, 1]])).to_tensor(1, 3, (2,))
    assert keep.tolist() == [[[False, False, True]], [[False, True, True]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("heads", [1, HEADS])
def test_from_hf_of_four_axes_masks_with_the_lowest_number(dtype, heads):
    pairs = random_torch_mask(BATCH, heads, QUERIES, KEYS)
    for lowest in (torch.finfo(dtype).min, -torch.inf):
        additive = torch.zeros(pairs.shape, dtype=dtype).masked_fill(pairs, lowest)
        allowed = from_hf(additive).to_tensor(QUERIES, KEYS, (BATCH, HEADS))
        assert allowed.equal((~pairs).expand(allowed.shape))


def test_from_hf_of_four_boolean_axes_attends_where_it_is_true():
    pairs = random_torch_mask(BATCH, 1, QUERIES, KEYS)
    allowed = from_hf(pairs).to_tensor(QUERIES, KEYS, (BATCH, HEADS))
    assert allowed.equal(pairs.expand(allowed.shape))


@pytest.mark.parametrize(
    ("convert", "error", "message"),
    [
        (lambda: from_torch(torch.full((5, 7), 0.5)), RegardError, "attn_mask.*0 and -inf.*bias="),
        (
            lambda: from_torch(key_padding_mask=torch.tensor([[torch.nan, 0.0]])),
            RegardError,
            "key_padding_mask must hold only 0 and -inf",
        ),
        (
            lambda: from_torch(torch.ones(5, 7).long()),
            TypeError,
            r"attn_mask must be boolean or float.*int64; pass attn_mask\.bool\(\)",
        ),
        (
            lambda: from_torch(random_torch_mask(6, 5, 7)),
            RegardError,
            "needs heads= to be split.*None.*6",
        ),
        (
            lambda: from_torch(random_torch_mask(6, 5, 7), heads=4),
            RegardError,
            "heads is 4.*first axis has size 6",
        ),
        (
            lambda: from_hf(random_torch_mask(2, 5, 7)),
            RegardError,
            r"\(batch, key\) or.*\(2, 5, 7\)",
        ),
        (lambda: from_hf(torch.tensor([[1, 1, 2, 2]])), RegardError, "1 to attend.*documents"),
        (
            lambda: from_hf(to_float(random_torch_mask(2, 7))),
            RegardError,
            "0 to mask, but it holds other.*bias=",
        ),
        (lambda: from_hf(torch.full((1, 1, 5, 7), 0.5)), RegardError, "attention_mask.*-inf"),
        (lambda: from_hf(torch.ones(1, 1, 5, 7).long()), TypeError, r"attention_mask\.bool\(\)"),
    ],
)
def test_mask_that_cannot_be_converted_is_refused(convert, error, message):
    with pytest.raises(error, match=message):
        convert()
