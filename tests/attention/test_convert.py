import itertools

import pytest
import torch
from torch import nn

from regard.attention import MultiHeadAttention
from regard.errors import RegardError
from regard.masks import as_mask, causal, from_torch
from regard.positions import Rotary

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12


def make_torch_module(**options):
    module = nn.MultiheadAttention(WIDTH, HEADS, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)  # biases too: torch starts them at 0
    return module.eval()


OPTIONS = [
    {"bias": bias, "batch_first": first, "kdim": key_width, "vdim": value_width}
    for bias, first, key_width, value_width in itertools.product(
        (True, False), (True, False), (None, 8), (None, 4)
    )
]
RNG = torch.Generator().manual_seed(0)  # no row is fully masked, for which torch returns NaN
MASKS = {
    "none": {},
    "boolean": {"attn_mask": torch.rand(QUERIES, KEYS, generator=RNG) > 0.7},
    "float": {
        "attn_mask": torch.zeros(QUERIES, KEYS).masked_fill(torch.eye(5, 7).bool(), -torch.inf)
    },
    "per head": {"attn_mask": torch.rand(BATCH * HEADS, QUERIES, KEYS, generator=RNG) > 0.7},
    "padding": {"key_padding_mask": torch.tensor([[False] * 7, [False] * 3 + [True] * 4])},
}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_from_torch_agrees_with_torch_for_every_option_and_mask(options, masks):
    module = make_torch_module(**options)
    converted = MultiHeadAttention.from_torch(module)
    queries = torch.randn(BATCH, QUERIES, WIDTH)
    keys = torch.randn(BATCH, KEYS, options["kdim"] or WIDTH)
    values = torch.randn(BATCH, KEYS, options["vdim"] or WIDTH)
    inputs = [x if options["batch_first"] else x.transpose(0, 1) for x in (queries, keys, values)]
    context, weights = module(*inputs, **MASKS[masks], average_attn_weights=False)
    context = context if options["batch_first"] else context.transpose(0, 1)
    output = converted.look(queries, keys, values, mask=from_torch(**MASKS[masks], heads=HEADS))
    torch.testing.assert_close(output.context, context, rtol=0, atol=1e-5)
    torch.testing.assert_close(output.weights, weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_parameters_round_trip_through_torch(options):
    converted = MultiHeadAttention.from_torch(make_torch_module(**options))
    again = MultiHeadAttention.from_torch(converted.to_torch())
    for (name, one), (_, other) in zip(
        converted.state_dict().items(), again.state_dict().items(), strict=True
    ):
        assert torch.equal(one, other), name


def test_causal_self_attention_and_its_gradients_agree_with_torch():
    module = make_torch_module(batch_first=True).train()
    converted = MultiHeadAttention.from_torch(module)
    assert converted.training
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    torch_mask = ~causal().to_tensor(QUERIES)
    context, _ = module(rows, rows, rows, attn_mask=torch_mask, is_causal=True, need_weights=False)
    computed = converted(rows, mask=causal())
    torch.testing.assert_close(computed, context, rtol=0, atol=1e-5)
    computed.square().sum().backward()
    context.square().sum().backward()
    torch.testing.assert_close(
        torch.cat(
            [converted.query.weight.grad, converted.key.weight.grad, converted.value.weight.grad]
        ),
        module.in_proj_weight.grad,
        rtol=1e-4,
        atol=1e-5,
    )


def test_input_without_batch_axis_agrees_with_torch():
    module = make_torch_module()
    converted = MultiHeadAttention.from_torch(module)
    rows = torch.randn(QUERIES, WIDTH)
    context, weights = module(rows, rows, rows, average_attn_weights=False)
    output = converted.look(rows)
    torch.testing.assert_close(output.context, context, rtol=0, atol=1e-5)
    torch.testing.assert_close(output.weights, weights, rtol=0, atol=1e-5)


def test_fully_masked_query_gets_zeros_where_torch_gives_nan():
    module = make_torch_module(batch_first=True)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    mask = torch.ones(QUERIES, QUERIES, dtype=torch.bool).tril()
    mask[0] = False
    converted = MultiHeadAttention.from_torch(module)
    output = converted.look(rows, mask=as_mask(mask))
    assert (output.weights[:, :, 0] == 0).all()
    torch.testing.assert_close(output.context[:, 0], converted.out.bias.expand(BATCH, WIDTH))


@pytest.mark.parametrize("option", ["add_bias_kv", "add_zero_attn"])
def test_from_torch_refuses_modules_that_add_keys(option):
    with pytest.raises(RegardError, match="add_bias_kv and add_zero_attn"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(WIDTH, HEADS, **{option: True}))


@pytest.mark.parametrize(
    "options",
    [{"score": "cosine"}, {"key_heads": 1}, {"head_width": 8}, {"positions": Rotary(4)}],
    ids=str,
)
def test_to_torch_refuses_options_that_torch_lacks(options):
    with pytest.raises(RegardError, match="torch's module has only"):
        MultiHeadAttention(WIDTH, HEADS, **options).to_torch()
