import threading
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as imported_by_name
from torch.utils.checkpoint import checkpoint

from regard import RegardError, masks, watch
from regard.attention import MultiHeadAttention
from regard.models import Embedding, RecurrentModel


def peaky(model):
    """Let a fresh model look somewhere: else it looks everywhere alike, and all would agree."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(0, 0.4)
    return model


class Plain(nn.Module):
    """Self-attention in a few lines, as users write it."""

    def __init__(self, width=12, heads=3):
        super().__init__()
        self.heads, self.project = heads, nn.Linear(width, 3 * width)

    def forward(self, rows, **settings):
        parts = self.project(rows).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return imported_by_name(*parts, **settings)

    def weights(self, rows):
        q, k, _ = self.project(rows).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)


def test_attention_imported_by_name_is_seen():
    model, rows = peaky(Plain()), torch.randn(2, 5, 12)
    with watch(model) as seen:
        watched = model(rows)
    assert torch.equal(watched, model(rows))
    assert len(seen) == 1 and seen[0].kind == "self" and seen[0].name == "Plain"
    assert seen[0].place.startswith("test_mode.py:")
    torch.testing.assert_close(seen[0].weights, model.weights(rows))


def test_nothing_is_seen_before_and_after():
    model, rows = Plain(), torch.randn(2, 5, 12)
    model(rows)
    with watch(model) as seen:
        pass
    model(rows)
    assert len(seen) == 0


def test_other_models_are_not_seen():
    model, other = Plain(), Plain()
    with watch(model) as seen:
        other(torch.randn(2, 5, 12))
    with pytest.raises(RegardError, match="no attention was found in Plain; looked for scaled_dot"):
        seen.check()


def test_two_models_may_be_watched_at_once():
    model, other, rows = Plain(), Plain(), torch.randn(2, 5, 12)
    with watch(model) as mine, watch(other) as theirs:
        model(rows)
        other(rows)
    assert len(mine) == len(theirs) == 1


def test_a_model_may_be_watched_twice_at_once():
    model, rows = peaky(nn.MultiheadAttention(12, 4, batch_first=True)), torch.randn(2, 5, 12)
    with watch(model) as outer, watch(model) as inner:
        model(rows, rows, rows, need_weights=True)
    assert torch.equal(outer[0].weights, inner[0].weights)
    assert outer[0].weights.shape == (2, 4, 5, 5)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("train", [False, True])
def test_multihead_of_torch(need_weights, batch_first, train):
    model = peaky(nn.MultiheadAttention(12, 4, batch_first=batch_first)).train(train)
    queries, keys = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
    if not batch_first:
        queries, keys = queries.transpose(0, 1), keys.transpose(0, 1)
    mask = torch.zeros(2, 7, dtype=torch.bool)
    mask[1, 4:] = True
    settings = {"need_weights": need_weights, "key_padding_mask": mask}
    plain = model(queries, keys, keys, **settings)
    with watch(model) as seen:
        watched = model(queries, keys, keys, **settings)
    settings |= {"need_weights": True, "average_attn_weights": False}
    expected = model(queries, keys, keys, **settings)[1]
    assert torch.equal(plain[0], watched[0])
    assert plain[1] is None or torch.equal(plain[1], watched[1])
    assert seen[0].kind == "cross" and len(seen) == 1
    torch.testing.assert_close(seen[0].weights, expected)


def test_weights_of_torch_are_those_before_dropout():
    model = peaky(nn.MultiheadAttention(12, 4, dropout=0.5, batch_first=True)).train()
    rows = torch.randn(2, 5, 12)
    for need_weights in (False, True):
        with watch(model) as seen:
            model(rows, rows, rows, need_weights=need_weights)
        torch.testing.assert_close(seen[0].weights.sum(-1), torch.ones(2, 4, 5))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("way", ["train", "eval", "eval without gradients"])
def test_the_transformer_of_torch(way):
    model = peaky(nn.Transformer(12, 4, 2, 2, 16, dropout=0.0, batch_first=True))
    model.train(way == "train")
    source, target = torch.randn(2, 7, 12), torch.randn(2, 7, 12)  # only origins tell them apart
    padding = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
    stairs = nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.bool)
    given = {"tgt_mask": stairs, "src_key_padding_mask": padding}
    given["memory_key_padding_mask"] = padding
    with torch.set_grad_enabled("without" not in way):
        with watch(model) as seen:
            watched = model(source, target, **given)
        with slow_path():
            slow = model(source, target, **given)
            reference = _weights_of_torch(model, source, target, given)
    assert torch.equal(watched, slow)
    assert [look.kind for look in seen] == ["self"] * 2 + ["causal", "cross"] * 2
    assert seen.module_names[0] == "encoder.layers.0.self_attn"
    assert seen.module_names[-1] == "decoder.layers.1.multihead_attn"
    for look, expected in zip(seen, reference, strict=True):
        torch.testing.assert_close(look.weights, expected, atol=2e-6, rtol=0)


@contextmanager
def slow_path():
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def _weights_of_torch(model, source, target, given):
    """Collect what nn.MultiheadAttention itself says, asked for it in every layer."""
    found = []

    def ask(module, args, kwargs):
        return args, kwargs | {"need_weights": True, "average_attn_weights": False}

    def collect(module, args, kwargs, out):
        found.append(out[1])

    hooks = []
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            hooks.append(module.register_forward_pre_hook(ask, with_kwargs=True))
            hooks.append(module.register_forward_hook(collect, with_kwargs=True))
    model(source, target, **given)
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_fast_path_with_nested_tensors_is_seen():
    layer = nn.TransformerEncoderLayer(12, 4, 16, batch_first=True)
    model = peaky(nn.TransformerEncoder(layer, 2)).eval()
    padding = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
    with torch.no_grad(), watch(model) as seen:
        model(torch.randn(2, 7, 12), src_key_padding_mask=padding)
    assert seen.module_names == ("layers.0.self_attn", "layers.1.self_attn")
    assert not seen[0].weights[1, :, :, 4:].any()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_fast_path_of_torch_differs_by_rounding_and_at_padding():
    layer = nn.TransformerEncoderLayer(12, 4, 16, batch_first=True)
    model, rows = peaky(nn.TransformerEncoder(layer, 2)).eval(), torch.randn(2, 7, 12)
    padding = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
    with torch.no_grad():
        fast = model(rows, src_key_padding_mask=padding)
        with watch(model):
            watched = model(rows, src_key_padding_mask=padding)
        with slow_path():
            slow = model(rows, src_key_padding_mask=padding)
    assert torch.equal(watched, slow)
    torch.testing.assert_close(watched[~padding], fast[~padding], atol=1e-5, rtol=0)
    assert not fast[padding].any() and watched[padding].any()


LAYERS = {
    "encoder": (lambda: nn.TransformerEncoderLayer(12, 4, 16, batch_first=True), 1),
    "decoder": (lambda: nn.TransformerDecoderLayer(12, 4, 16, batch_first=True), 2),
}


@pytest.mark.parametrize("module", LAYERS)
def test_the_fast_paths_of_single_layers_differ_by_rounding(module):
    make, given = LAYERS[module]
    model, rows = peaky(make()).eval(), [torch.randn(2, 5, 12)] * given
    with torch.no_grad():
        fast = model(*rows)
        with watch(model) as seen:
            watched = model(*rows)
        with slow_path():
            slow = model(*rows)
    assert len(seen) == given and torch.equal(watched, slow)
    torch.testing.assert_close(watched, fast, atol=1e-5, rtol=0)


def test_a_compiled_model_is_seen():
    model, rows = peaky(Plain()), torch.randn(2, 5, 12)
    compiled = torch.compile(model, backend="eager")
    compiled(rows)
    for watched in (model, compiled):
        with watch(watched) as seen:
            out = compiled(rows)
        assert torch.equal(out, model(rows))
        torch.testing.assert_close(seen[0].weights, model.weights(rows))
    assert seen[0].name == "Plain"


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointed_layers_are_counted_once(use_reentrant):
    model, rows = Plain(), torch.randn(2, 5, 12, requires_grad=True)
    own = MultiHeadAttention(12, 3)
    both = nn.ModuleList([model, own])
    with watch(both) as seen:
        out = checkpoint(model, rows, use_reentrant=use_reentrant)
        more = checkpoint(own, rows, use_reentrant=use_reentrant)
        (out.sum() + more.sum()).backward()
    assert [look.steps for look in seen] == [1, 1]
    assert rows.grad is not None


def test_gradients_are_the_same():
    model, rows = peaky(Plain()), torch.randn(2, 5, 12)
    model(rows).square().sum().backward()
    plain = model.project.weight.grad.clone()
    model.zero_grad()
    with watch(model):
        model(rows).square().sum().backward()
    assert torch.equal(model.project.weight.grad, plain)


def test_dropout_draws_the_same_numbers():
    model, rows = peaky(Plain()), torch.randn(2, 5, 12)
    torch.manual_seed(5)
    plain = model(rows, dropout_p=0.5)
    torch.manual_seed(5)
    with watch(model) as seen:
        watched = model(rows, dropout_p=0.5)
    assert torch.equal(plain, watched)
    torch.testing.assert_close(seen[0].weights, model.weights(rows))


def test_a_score_that_drops_leaves_the_random_numbers_that_follow():
    class Dropping(nn.Module):
        def forward(self, queries, keys):
            return nn.functional.dropout(queries @ keys.mT, 0.5)

    model, rows = (
        nn.Sequential(MultiHeadAttention(12, 3, score=Dropping()), nn.Dropout()),
        torch.randn(2, 5, 12),
    )
    torch.manual_seed(5)
    plain = model(rows)
    torch.manual_seed(5)
    with watch(model) as seen:
        watched = model(rows)
    assert len(seen) == 1 and torch.equal(plain, watched)


def test_autocast_rounds_queries_and_keys_only():
    model, rows = peaky(Plain()), torch.randn(2, 5, 12)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = model(rows)
        parts = model.project(rows)
        with watch(model) as seen:
            watched = model(rows)
    assert torch.equal(plain, watched)
    q, k, _ = parts.float().unflatten(-1, (3, 3, -1)).permute(2, 0, 3, 1, 4)
    torch.testing.assert_close(seen[0].weights, (q @ k.mT / 2).softmax(-1))
    torch.testing.assert_close(seen[0].weights.sum(-1), torch.ones(2, 3, 5))


def test_autocast_rounds_what_was_float32():
    class Raw(nn.Module):
        def forward(self, q, k, v):
            return imported_by_name(q, k, v)

    q, k, v = (torch.randn(2, 3, 5, 4) * 3 for _ in range(3))
    model = Raw()
    with torch.autocast("cpu", dtype=torch.bfloat16), watch(model) as seen:
        model(q, k, v)
    q, k = (x.to(torch.bfloat16).float() for x in (q, k))
    torch.testing.assert_close(seen[0].weights, (q @ k.mT / 2).softmax(-1))


def test_inference_mode():
    model, rows = peaky(Plain()), torch.randn(2, 5, 12)
    with torch.inference_mode(), watch(model) as seen:
        model(rows)
    torch.testing.assert_close(seen[0].weights, model.weights(rows))


def test_shared_layers_are_calls_of_one_site():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.out = peaky(Plain()), nn.Linear(12, 12)

        def forward(self, rows):
            for _ in range(3):
                rows = self.out(self.layer(rows).transpose(1, 2).flatten(2))
            return rows

    model = Shared()
    with watch(model) as seen:
        model(torch.randn(2, 5, 12))
    assert [(look.name, look.call) for look in seen] == [("layer", 0), ("layer", 1), ("layer", 2)]


def by_softmax(queries, keys, values):
    return (queries @ keys.mT).softmax(-1) @ values


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("how", [imported_by_name, by_softmax])
def test_layers_without_output_projection_keep_their_kinds(how, crossed):
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(9))

        def forward(self, rows, memory=None):
            for q, k, v in zip(*(self.layers[n::3] for n in range(3)), strict=True):
                read = rows if memory is None else memory
                rows = nn.functional.layer_norm(rows + how(q(rows), k(read), v(read)), (12,))
            return rows

    model, rows = Layers(), torch.randn(2, 5, 12)
    with watch(model) as seen:
        model(rows, torch.randn(2, 5, 12)) if crossed else model(rows)
    assert [look.kind for look in seen] == ["cross" if crossed else "self"] * 3


OWN = {
    "plain": ({}, None),
    "causal": ({}, masks.causal()),
    "lengths": ({}, masks.lengths([3, 5])),
    "grouped": ({"key_heads": 2}, masks.causal()),
    "additive": ({"score": "additive"}, masks.lengths([3, 5])),
    "gaussian": ({"score": "gaussian"}, None),
}


@pytest.mark.parametrize("case", OWN)
def test_the_attention_of_regard(case):
    settings, mask = OWN[case]
    model, rows = peaky(MultiHeadAttention(12, 4, **settings)), torch.randn(2, 5, 12)
    with watch(model) as seen:
        watched = model(rows, mask=mask)
    expected = model.look(rows, mask=mask)
    assert torch.equal(watched, expected.context)
    assert [look.kind for look in seen] == ["causal" if case in ("causal", "grouped") else "self"]
    torch.testing.assert_close(seen[0].weights, expected.weights)
    assert seen[0].place.startswith("multihead.py:")


def test_looking_is_seen_as_one_call():
    model, rows = peaky(MultiHeadAttention(12, 4)), torch.randn(2, 5, 12)
    with watch(model) as seen:
        _, weights = model.look(rows)
    assert len(seen) == 1
    torch.testing.assert_close(seen[0].weights, weights)


@pytest.mark.parametrize("score", ["additive", "bilinear"])
def test_a_recurrent_translator_is_one_map_of_all_its_steps(score):
    model = peaky(RecurrentModel(Embedding(20, 12), Embedding(20, 12), score=score)).eval()
    source, lengths = torch.randint(4, 20, (2, 7)), torch.tensor([7, 4])
    target = torch.randint(4, 20, (2, 5))
    with torch.no_grad():
        _, looks = model.forward_with_weights(source, lengths, target)
        with watch(model) as seen:
            model.decode(target, model.encode(source, lengths))
    assert len(seen) == 1 and seen[0].kind == "cross" and seen[0].steps == 5
    torch.testing.assert_close(seen[0].weights, looks.cross[0])


def test_what_runs_in_another_thread_is_neither_seen_nor_hurt():
    model, own, rows = Plain(), MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    done = []

    def run():
        done.append((model(rows), own(rows)))

    with watch(nn.ModuleList([model, own])) as seen:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(seen) == 0 and len(done) == 1
    with pytest.raises(RegardError, match="or in another thread only"):
        seen.check()


def test_an_error_inside_the_model_leaves_nothing_behind():
    model = Plain()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), watch(model):
        model(torch.randn(2, 5, 11))
    from regard.attention import observer

    assert observer.present is None
    assert not torch.overrides._get_current_function_mode_stack()


def test_watching_is_asked_for_properly(unchecked):
    with pytest.raises(TypeError, match="model must be an nn.Module, but it is a function"):
        watch(lambda x: x).__enter__()
    with pytest.raises(ValueError, match="keep must be one of auto, all, reduced, but it is 'top'"):
        watch(Plain(), keep="top").__enter__()
    with pytest.raises(RegardError, match="no module is called 'projekt'. Did you mean 'project'"):
        watch(Plain(), modules="projekt").__enter__()
    model = Plain()
    wrong = pytest.raises(RegardError, match="heads must be numbers from 0 to 2 for Plain")
    with wrong, watch(model, heads=[3]):
        model(torch.randn(2, 5, 12))


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("stairs", [False, True])
@pytest.mark.parametrize("extra", ["add_bias_kv", "add_zero_attn"])
def test_keys_that_torch_adds_are_named_as_such(extra, stairs, need_weights):
    model = peaky(nn.MultiheadAttention(12, 4, batch_first=True, **{extra: True}))
    rows = torch.randn(2, 5, 12)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if stairs else None
    with watch(model) as seen:
        model(rows, rows, rows, need_weights=need_weights, attn_mask=mask)
    _, expected = model(rows, rows, rows, attn_mask=mask, average_attn_weights=False)
    torch.testing.assert_close(seen[0].weights, expected)
    assert (seen[0].kind, seen[0].offset) == ("causal" if stairs else "self", 0)
    trace = seen.trace(list("abcde"))
    assert trace.tokens["text"].pieces == tuple("abcde")
    assert trace.tokens[trace.maps[0].keys].pieces == (*"abcde", "+1")


def test_a_class_token_looks_at_the_text_from_outside():
    class Classifies(Plain):
        def forward(self, rows):
            parts = self.project(rows).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            return imported_by_name(parts[0][:, :, :1], parts[1], parts[2])

    model = Classifies()
    with watch(model) as seen:
        model(torch.randn(2, 5, 12))
    assert seen[0].kind == "cross"
    look = seen.trace(list("abcde")).maps[0]
    assert look.shape == (3, 1, 5) and look.weights.sum() == pytest.approx(3)


def test_a_cache_that_is_written_in_place_is_causal():
    class Cached(Plain):
        def __init__(self):
            super().__init__()
            self.kept, self.count = [torch.zeros(2, 3, 9, 4) for _ in range(2)], 0

        def forward(self, rows):
            q, *new = self.project(rows).unflatten(-1, (3, 3, -1)).permute(2, 0, 3, 1, 4)
            end = self.count + rows.shape[1]
            for kept, part in zip(self.kept, new, strict=True):
                kept[:, :, self.count : end] = part
            self.count = end
            return imported_by_name(q, *(kept[:, :, :end] for kept in self.kept))

    model = Cached()
    with torch.no_grad(), watch(model) as seen:
        for _ in range(3):
            model(torch.randn(2, 1, 12))
    assert seen[-1].kind == "causal"


class Pooled(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.pool, self.query = cross, nn.Parameter(torch.randn(1, 1, 12))

    def forward(self, rows):
        return self.pool(self.query.expand(len(rows), -1, -1), rows, rows)


def test_a_pooling_head_that_is_called_twice_is_two_looks():
    model, rows = Pooled(nn.MultiheadAttention(12, 3, batch_first=True)), torch.randn(2, 5, 12)
    with watch(model) as seen:
        for _ in range(2):
            model(rows)
    assert [(look.call, look.steps) for look in seen] == [(0, 1), (1, 1)]
    assert seen.weights("pool", 1).shape == (2, 3, 1, 5)


def test_keys_that_are_computed_again_in_every_step_of_a_call_are_the_same():
    class Decoder(Pooled):
        def forward(self, rows):
            return [super(Decoder, self).forward(rows) for _ in range(4)]

    model = Decoder(nn.MultiheadAttention(12, 3, batch_first=True))
    with watch(model) as seen:
        model(torch.randn(2, 5, 12))
    assert [look.steps for look in seen] == [4]


@pytest.mark.parametrize("how", [imported_by_name, by_softmax])
@pytest.mark.parametrize("keep", ["all", "reduced"])
def test_the_defaults_of_the_user_do_not_matter(keep, how):
    class Bare(nn.Module):
        def forward(self, rows):
            return how(rows, rows, rows)

    model, rows = Bare(), torch.randn(1, 2, 200, 12)
    with watch(model, keep=keep) as plain:
        model(rows)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("meta"):
            with watch(model, keep=keep) as seen:
                model(rows)
            mine, theirs = ((look.weights, look.rows) for look in (seen[0], plain[0]))
    finally:
        torch.set_default_dtype(before)
    torch.testing.assert_close(mine[0], theirs[0])
    torch.testing.assert_close(mine[1], theirs[1])


def test_a_mask_of_unknown_numbers_is_a_miss():
    class Strange(torch.Tensor):
        pass

    model, rows = Plain(), torch.randn(2, 5, 12)
    mask = torch.zeros(5, 5).as_subclass(Strange)
    with watch(model) as seen:
        model(rows, attn_mask=mask)
    assert "the mask is a Strange" in str(seen) and len(seen) == 0
