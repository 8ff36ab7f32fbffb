"""`torch.nn.Transformer` and its layers, whose fast paths are switched off while watched."""

from contextlib import contextmanager

import pytest
import torch
from torch import nn

from helpers.watched_models import sharpen
from regard import watch

pytestmark = [
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]

PADDING = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])


@contextmanager
def slow_path():
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def weights_by_hooks(model, *args, **kwargs):
    """Collect the weights that each nn.MultiheadAttention returns when asked for them."""
    collected = []

    def ask(module, args, kwargs):
        return args, kwargs | {"need_weights": True, "average_attn_weights": False}

    def collect(module, args, kwargs, out):
        collected.append(out[1])

    hooks = []
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            hooks.append(module.register_forward_pre_hook(ask, with_kwargs=True))
            hooks.append(module.register_forward_hook(collect, with_kwargs=True))
    model(*args, **kwargs)
    for hook in hooks:
        hook.remove()
    return collected


@pytest.mark.parametrize("case", ["train", "eval", "eval without gradients"])
def test_transformer_is_captured_in_all_layers(case):
    model = sharpen(nn.Transformer(12, 4, 2, 2, 16, dropout=0.0, batch_first=True))
    model.train(case == "train")
    # of equal lengths, so that only lineage can tell the texts apart
    source, target = torch.randn(2, 7, 12), torch.randn(2, 7, 12)
    settings = {
        "tgt_mask": nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.bool),
        "src_key_padding_mask": PADDING,
        "memory_key_padding_mask": PADDING,
    }
    with torch.set_grad_enabled("without" not in case):
        with watch(model) as capture:
            watched = model(source, target, **settings)
        with slow_path():
            slow = model(source, target, **settings)
            reference = weights_by_hooks(model, source, target, **settings)
    assert torch.equal(watched, slow)
    assert [x.kind for x in capture] == ["self"] * 2 + ["causal", "cross"] * 2
    assert capture.module_names[0] == "encoder.layers.0.self_attn"
    assert capture.module_names[-1] == "decoder.layers.1.multihead_attn"
    for captured, expected in zip(capture, reference, strict=True):
        torch.testing.assert_close(captured.weights, expected, atol=2e-6, rtol=0)


def new_encoder():
    layer = nn.TransformerEncoderLayer(12, 4, 16, batch_first=True)
    return sharpen(nn.TransformerEncoder(layer, 2)).eval()


def test_encoder_with_nested_tensor_fast_path_is_captured():
    model = new_encoder()
    with torch.no_grad(), watch(model) as capture:
        model(torch.randn(2, 7, 12), src_key_padding_mask=PADDING)
    assert capture.module_names == ("layers.0.self_attn", "layers.1.self_attn")
    assert not capture[0].weights[1, :, :, 4:].any()


def test_watched_encoder_differs_from_the_fast_path_by_rounding_and_at_padding():
    model, rows = new_encoder(), torch.randn(2, 7, 12)
    with torch.no_grad():
        fast = model(rows, src_key_padding_mask=PADDING)
        with watch(model):
            watched = model(rows, src_key_padding_mask=PADDING)
        with slow_path():
            slow = model(rows, src_key_padding_mask=PADDING)
    assert torch.equal(watched, slow)
    torch.testing.assert_close(watched[~PADDING], fast[~PADDING], atol=1e-5, rtol=0)
    assert not fast[PADDING].any() and watched[PADDING].any()


LAYERS = {
    "encoder": (lambda: nn.TransformerEncoderLayer(12, 4, 16, batch_first=True), 1),
    "decoder": (lambda: nn.TransformerDecoderLayer(12, 4, 16, batch_first=True), 2),
}


@pytest.mark.parametrize("case", LAYERS)
def test_watched_layer_differs_from_the_fast_path_by_rounding(case):
    make_layer, num_inputs = LAYERS[case]
    model, inputs = sharpen(make_layer()).eval(), [torch.randn(2, 5, 12)] * num_inputs
    with torch.no_grad():
        fast = model(*inputs)
        with watch(model) as capture:
            watched = model(*inputs)
        with slow_path():
            slow = model(*inputs)
    assert len(capture) == num_inputs and torch.equal(watched, slow)
    torch.testing.assert_close(watched, fast, atol=1e-5, rtol=0)
