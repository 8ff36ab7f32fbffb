import itertools

import pytest
import torch
from torch import nn

from regard.attention import MultiHeadAttention
from regard.masks import as_mask, causal, from_torch
from regard.positions import Rotary

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12


def make_theirs(**settings):
    theirs = nn.MultiheadAttention(WIDTH, HEADS, **settings)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.4)  # biases too: torch starts them at 0
    return theirs.eval()


OPTIONS = [
    {"bias": bias, "batch_first": first, "kdim": key_width, "vdim": value_width}
    for bias, first, key_width, value_width in itertools.product(
        (True, False), (True, False), (None, 8), (None, 4)
    )
]
CHANCE = torch.Generator().manual_seed(0)  # no row is hidden whole, which torch gives NaN for
MASKS = {
    "none": {},
    "boolean": {"attn_mask": torch.rand(QUERIES, KEYS, generator=CHANCE) > 0.7},
    "float": {
        "attn_mask": torch.zeros(QUERIES, KEYS).masked_fill(torch.eye(5, 7).bool(), -torch.inf)
    },
    "per head": {"attn_mask": torch.rand(BATCH * HEADS, QUERIES, KEYS, generator=CHANCE) > 0.7},
    "padding": {"key_padding_mask": torch.tensor([[False] * 7, [False] * 3 + [True] * 4])},
}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_shared_option_agrees_with_torch(options, masks):
    theirs = make_theirs(**options)
    ours = MultiHeadAttention.from_torch(theirs)
    queries = torch.randn(BATCH, QUERIES, WIDTH)
    keys = torch.randn(BATCH, KEYS, options["kdim"] or WIDTH)
    values = torch.randn(BATCH, KEYS, options["vdim"] or WIDTH)
    inputs = [x if options["batch_first"] else x.transpose(0, 1) for x in (queries, keys, values)]
    context, weights = theirs(*inputs, **MASKS[masks], average_attn_weights=False)
    context = context if options["batch_first"] else context.transpose(0, 1)
    looked = ours.look(queries, keys, values, mask=from_torch(**MASKS[masks], heads=HEADS))
    torch.testing.assert_close(looked.context, context, rtol=0, atol=1e-5)
    torch.testing.assert_close(looked.weights, weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_weights_go_to_torch_and_back_unchanged(options):
    ours = MultiHeadAttention.from_torch(make_theirs(**options))
    again = MultiHeadAttention.from_torch(ours.to_torch())
    for (name, one), (_, other) in zip(
        ours.state_dict().items(), again.state_dict().items(), strict=True
    ):
        assert torch.equal(one, other), name


def test_causal_self_attention_agrees_in_training_and_its_gradients_too():
    theirs = make_theirs(batch_first=True).train()
    ours = MultiHeadAttention.from_torch(theirs)
    assert ours.training
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    hidden = ~causal().to_tensor(QUERIES)
    context, _ = theirs(rows, rows, rows, attn_mask=hidden, is_causal=True, need_weights=False)
    mine = ours(rows, mask=causal())
    torch.testing.assert_close(mine, context, rtol=0, atol=1e-5)
    mine.square().sum().backward()
    context.square().sum().backward()
    torch.testing.assert_close(
        torch.cat([ours.query.weight.grad, ours.key.weight.grad, ours.value.weight.grad]),
        theirs.in_proj_weight.grad,
        rtol=1e-4,
        atol=1e-5,
    )


def test_rows_without_a_batch_agree():
    theirs = make_theirs()
    ours = MultiHeadAttention.from_torch(theirs)
    rows = torch.randn(QUERIES, WIDTH)
    context, weights = theirs(rows, rows, rows, average_attn_weights=False)
    looked = ours.look(rows)
    torch.testing.assert_close(looked.context, context, rtol=0, atol=1e-5)
    torch.testing.assert_close(looked.weights, weights, rtol=0, atol=1e-5)


def test_a_row_that_torch_answers_with_nan_is_zeros_here():
    theirs = make_theirs(batch_first=True)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    nowhere = torch.ones(QUERIES, QUERIES, dtype=torch.bool).tril()
    nowhere[0] = False
    ours = MultiHeadAttention.from_torch(theirs)
    looked = ours.look(rows, mask=as_mask(nowhere))
    assert (looked.weights[:, :, 0] == 0).all()
    torch.testing.assert_close(looked.context[:, 0], ours.out.bias.expand(BATCH, WIDTH))


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_keys_that_no_input_has_are_refused(option):
    with pytest.raises(ValueError, match="add_bias_kv and add_zero_attn"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(WIDTH, HEADS, **{option: True}))


@pytest.mark.parametrize(
    "settings",
    [{"score": "cosine"}, {"key_heads": 1}, {"head_width": 8}, {"positions": Rotary(4)}],
    ids=str,
)
def test_what_torch_does_not_know_is_not_handed_over(settings):
    with pytest.raises(ValueError, match="torch's module knows only"):
        MultiHeadAttention(WIDTH, HEADS, **settings).to_torch()
