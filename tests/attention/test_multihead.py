import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from regard.attention import (
    SCORE_NAMES,
    KeyValues,
    KVCache,
    MultiHeadAttention,
    ScaledDot,
    attend,
)
from regard.errors import RegardError
from regard.masks import causal, lengths, padding
from regard.positions import ALiBi, Rotary, Sinusoidal

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12


def split_heads(rows, heads):
    return torch.stack(rows.chunk(heads, dim=-1), dim=1)


def test_output_agrees_with_torchs_kernel_on_each_head():
    attention = MultiHeadAttention(WIDTH, HEADS)
    queries, keys = torch.randn(BATCH, QUERIES, WIDTH), torch.randn(BATCH, KEYS, WIDTH)
    q, k, v = (
        split_heads(project(rows), HEADS)
        for project, rows in zip(
            (attention.query, attention.key, attention.value), (queries, keys, keys), strict=True
        )
    )
    context = scaled_dot_product_attention(q, k, v)
    expected = attention.out(torch.cat(context.unbind(1), dim=-1))
    torch.testing.assert_close(attention(queries, keys), expected)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_look_has_the_output_of_forward(score, training):
    attention = MultiHeadAttention(WIDTH, HEADS, score=score, dropout=0.3).train(training)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    torch.manual_seed(1)
    expected = attention(rows, mask=lengths([2, 0]))
    torch.manual_seed(1)
    output = attention.look(rows, mask=lengths([2, 0]))
    torch.testing.assert_close(output.context, expected, rtol=0, atol=0)
    assert output.weights.shape == (BATCH, HEADS, QUERIES, QUERIES)
    assert (output.weights[1] == 0).all()
    assert (output.weights[0, :, :, 2:] == 0).all()


def test_weights_are_per_head_and_before_dropout():
    attention = MultiHeadAttention(512, 8, dropout=0.9).train()
    weights = attention.look(torch.randn(2, 5, 512)).weights
    assert weights.shape == (2, 8, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 8, 5))


def test_output_has_the_shape_of_the_queries():
    attention = MultiHeadAttention(24, 8)
    assert attention(torch.ones(2, 100, 24), mask=lengths([3, 2])).shape == (2, 100, 24)


def test_first_query_of_causal_self_attention_attends_to_itself():
    attention = MultiHeadAttention(WIDTH, HEADS)
    weights = attention.look(torch.randn(BATCH, QUERIES, WIDTH), mask=causal()).weights
    expected = torch.zeros(QUERIES)
    expected[0] = 1
    assert torch.equal(weights[:, :, 0], expected.expand(BATCH, HEADS, QUERIES))


@pytest.mark.parametrize("key_heads", [1, 2, 6])
@pytest.mark.parametrize("positions", [None, "rotary", "alibi"])
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_steps_with_a_cache_agree_with_one_causal_pass(score, positions, key_heads):
    module = {"rotary": Rotary(4), "alibi": ALiBi(6), None: None}[positions]
    attention = MultiHeadAttention(24, 6, key_heads=key_heads, score=score, positions=module).eval()
    rows = torch.randn(BATCH, QUERIES + 3, 24)
    at_once = attention(rows, mask=causal())
    for sizes in ([1] * 8, [3, 1, 4], [8]):
        for grad_mode in (torch.no_grad, torch.enable_grad):
            cache, contexts = KVCache(), []
            with grad_mode():
                for part in rows.split(sizes, dim=1):
                    context, cache = attention.step(part, cache)
                    contexts.append(context)
            assert len(cache) == QUERIES + 3
            torch.testing.assert_close(torch.cat(contexts, dim=1), at_once)


def test_step_takes_a_mask_over_all_keys_so_far():
    attention = MultiHeadAttention(WIDTH, HEADS)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    keep = torch.tensor([[True, False, True, True, True], [True, True, False, False, True]])
    at_once = attention(rows, mask=causal() & padding(keep))
    cache = KVCache()
    for i in range(QUERIES):
        mask = causal() & padding(keep[:, : i + 1])
        context, cache = attention.step(rows[:, i : i + 1], cache, mask=mask)
        torch.testing.assert_close(context, at_once[:, i : i + 1])


def test_reordered_cache_continues_the_selected_batch_items():
    attention = MultiHeadAttention(WIDTH, HEADS)
    rows = torch.randn(3, QUERIES, WIDTH)
    order = torch.tensor([2, 0, 2, 1])
    with torch.no_grad():
        _, cache = attention.step(rows[:, :-1], KVCache())
        context, _ = attention.step(rows[order, -1:], cache.reorder(order))
    at_once = attention(rows[order], mask=causal())
    torch.testing.assert_close(context, at_once[:, -1:])


@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
def test_projected_keys_and_values_are_not_projected_again(score, monkeypatch):
    attention = MultiHeadAttention(WIDTH, HEADS, score=score)
    queries, keys = torch.randn(BATCH, QUERIES, WIDTH), torch.randn(BATCH, KEYS, WIDTH)
    expected = attention(queries, keys, mask=lengths([3, 7]))
    memory = attention.project_kv(keys)
    assert isinstance(memory, KeyValues)

    def refuse(*_):
        raise AssertionError("keys or values were projected again")

    projections = [attention.key, attention.value]
    if score == "additive":
        projections.append(attention.score.key_projection)
    for projection in projections:
        monkeypatch.setattr(projection, "forward", refuse)
    torch.testing.assert_close(attention(queries, memory, mask=lengths([3, 7])), expected)
    single = attention(queries[:, 1], memory, mask=lengths([3, 7]))
    torch.testing.assert_close(single, expected[:, 1])
    reordered = attention(queries[[1, 0, 1]], memory.reorder(torch.tensor([1, 0, 1])))
    torch.testing.assert_close(reordered, attention(queries, memory)[[1, 0, 1]])


def test_all_widths_may_differ():
    attention = MultiHeadAttention(
        12, 2, key_heads=1, head_width=5, key_width=8, value_width=3, bias=False
    )
    output = attention.look(torch.randn(2, 5, 12), torch.randn(2, 7, 8), torch.randn(2, 7, 3))
    assert (output.context.shape, output.weights.shape) == ((2, 5, 12), (2, 2, 5, 7))
    assert attention.query.weight.shape == (10, 12)
    assert attention.key.weight.shape == (5, 8)
    assert attention.value.weight.shape == (5, 3)
    assert all(parameter.ndim == 2 for parameter in attention.parameters())


def test_queries_without_batch_axis_give_output_without_it():
    attention = MultiHeadAttention(WIDTH, HEADS)
    rows = torch.randn(QUERIES, WIDTH)
    output, batched = attention.look(rows, mask=causal()), attention.look(rows[None], mask=causal())
    torch.testing.assert_close(output.context, batched.context[0])
    torch.testing.assert_close(output.weights, batched.weights[0])
    single = attention.look(rows[0], torch.randn(KEYS, WIDTH))
    assert (single.context.shape, single.weights.shape) == ((WIDTH,), (HEADS, KEYS))


def test_key_values_without_batch_axis_agree_with_their_keys():
    attention = MultiHeadAttention(WIDTH, HEADS)
    queries, keys = torch.randn(QUERIES, WIDTH), torch.randn(KEYS, WIDTH)
    memory = attention.project_kv(keys)
    torch.testing.assert_close(attention(queries, memory), attention(queries, keys))
    torch.testing.assert_close(attention(queries[0], memory), attention(queries[0], keys))
    outputs = attention.look(queries, memory), attention.look(queries, keys)
    for computed, expected in zip(*outputs, strict=True):
        torch.testing.assert_close(computed, expected)


def test_rotary_weights_depend_on_distance_alone():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=Rotary(4))
    word = torch.randn(1, 1, WIDTH).expand(1, 9, WIDTH)
    weights = attention.look(word).weights[0]
    shifted = weights[:, 3:, 3:] / weights[:, 3:, 3:].sum(-1, keepdim=True)
    unshifted = weights[:, :-3, :-3] / weights[:, :-3, :-3].sum(-1, keepdim=True)
    torch.testing.assert_close(shifted, unshifted)
    assert not torch.allclose(weights[:, 0, 0], weights[:, 0, 1])


def test_alibi_is_added_to_the_bias():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    plain = MultiHeadAttention(WIDTH, HEADS)
    plain.load_state_dict(attention.state_dict())
    rows, bias = torch.randn(BATCH, QUERIES, WIDTH), torch.randn(QUERIES, QUERIES)
    alibi = ALiBi(HEADS)(QUERIES, QUERIES)
    torch.testing.assert_close(attention(rows, bias=bias), plain(rows, bias=alibi + bias))


@pytest.mark.parametrize("axes", [3, 4])
def test_alibi_is_added_to_the_bias_of_each_batch_item(axes):
    batch = HEADS  # a batch axis of this size could be mistaken for the heads
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    rows, bias = torch.randn(batch, QUERIES, WIDTH), torch.randn(batch, 1, QUERIES, QUERIES)
    bias = bias[:, 0] if axes == 3 else bias
    expected = [attention(rows[[n]], bias=bias[[n]]) for n in range(batch)]
    torch.testing.assert_close(attention(rows, bias=bias), torch.cat(expected))


def test_alibi_steps_without_batch_axis_agree_with_one_pass():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    rows, cache, steps = torch.randn(QUERIES, WIDTH), KVCache(), []
    for row in rows.split(1):
        context, cache = attention.step(row, cache)
        steps.append(context)
    torch.testing.assert_close(torch.cat(steps), attention(rows, mask=causal()))


def test_alibi_and_bias_broadcast_queries_to_the_batch_of_keys():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    queries, keys = torch.randn(1, KEYS, WIDTH), torch.randn(3, KEYS, WIDTH)
    bias = torch.randn(3, KEYS, KEYS)
    expected = attention(queries.expand(3, -1, -1), keys, bias=bias)
    torch.testing.assert_close(attention(queries, keys, bias=bias), expected)


def test_bias_of_a_wrong_shape_is_refused_with_alibi():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    rows, bias = torch.randn(2, QUERIES, WIDTH), torch.zeros(QUERIES, QUERIES + 1)
    with pytest.raises(RegardError, match="bias must broadcast to .* but its shape is"):
        attention(rows, bias=bias)


def test_alibi_accepts_any_number_of_batch_axes():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    rows, bias = torch.randn(2, HEADS, QUERIES, WIDTH), torch.randn(2, HEADS, QUERIES, QUERIES)
    for extra in (None, bias):
        flat = attention(rows.flatten(0, 1), bias=None if extra is None else extra.flatten(0, 1))
        torch.testing.assert_close(attention(rows, bias=extra), flat.unflatten(0, (2, HEADS)))


def test_one_head_with_identity_projections_is_attend():
    attention = MultiHeadAttention(WIDTH, heads=1, bias=False)
    for projection in (attention.query, attention.key, attention.value, attention.out):
        nn.init.eye_(projection.weight)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    torch.testing.assert_close(attention(rows), attend(rows))


def test_forward_look_and_step_store_nothing_on_the_module():
    attention = MultiHeadAttention(WIDTH, HEADS, score="additive", dropout=0.5)
    before = set(vars(attention)) | {name for name, _ in attention.named_buffers()}
    attention.look(torch.randn(BATCH, QUERIES, WIDTH))
    attention.step(torch.randn(BATCH, 1, WIDTH), KVCache())
    assert set(vars(attention)) | {name for name, _ in attention.named_buffers()} == before


INVALID_HEADS = [
    ({"heads": 5}, "12 / 5 leaves 2; 10 would work, or pass head_width="),
    ({"heads": 0}, "heads and key_heads must be 1 or more, but they are 0 and 0"),
    ({"heads": 6, "key_heads": 4}, "multiple of key_heads, but 6 / 4 leaves 2"),
    ({"heads": 3, "head_width": 0}, "head_width must be 1 or more, but it is 0"),
    ({"heads": 24}, "12 / 24 leaves 12; 24 would work"),
]


@pytest.mark.parametrize("positions", [Sinusoidal(WIDTH), Rotary, "rotary"])
@pytest.mark.usefixtures("unchecked")
def test_positions_of_another_kind_are_refused(positions):
    """They would have no effect."""
    with pytest.raises(TypeError, match="positions must be a Rotary or an ALiBi, but it is "):
        MultiHeadAttention(WIDTH, HEADS, positions=positions)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"width": "12"}, "width must be an integer, but it is '12'"),
        ({"width": 12, "heads": 1.5}, "heads must be an integer, but it is 1.5"),
        ({"width": 12, "heads": 4, "key_heads": 2.0}, "key_heads must be an integer, but it is 2"),
        ({"width": 12, "heads": 4, "head_width": 3.0}, "head_width must be an integer, but it is"),
    ],
)
def test_size_that_is_no_integer_is_refused_by_name(sizes, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        MultiHeadAttention(**sizes)


def test_width_below_one_is_refused():
    with pytest.raises(RegardError, match="width must be 1 or more, but it is 0"):
        MultiHeadAttention(0, 1)


@pytest.mark.parametrize(("arguments", "message"), INVALID_HEADS)
def test_heads_that_do_not_divide_are_refused(arguments, message):
    with pytest.raises(RegardError, match=message):
        MultiHeadAttention(WIDTH, **arguments)


def test_inputs_of_another_width_are_refused_by_name():
    attention = MultiHeadAttention(WIDTH, HEADS)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    with pytest.raises(RegardError, match=r"queries must have a width of 12.*\(2, 5, 8\)"):
        attention(rows[..., :8], rows)
    with pytest.raises(RegardError, match="keys must have a width of 12"):
        attention(rows, rows[..., :8])
    with pytest.raises(RegardError, match="values must have a width of 12"):
        attention(rows, rows, rows[..., :8])


@pytest.mark.parametrize(
    ("queries", "keys"),
    [((WIDTH,), (2, 5, WIDTH)), ((WIDTH,), None), ((2, 2, 6, WIDTH), (2, 5, WIDTH))],
)
def test_queries_with_a_wrong_number_of_axes_are_refused(queries, keys):
    attention = MultiHeadAttention(WIDTH, HEADS)
    message = r"queries must be \(batch, query, width\), with one axis fewer for a single query"
    with pytest.raises(RegardError, match=message):
        attention(torch.randn(queries), None if keys is None else torch.randn(keys))


def test_parameters_of_the_score_are_parameters_of_the_module():
    attention = MultiHeadAttention(WIDTH, HEADS, score="bilinear")
    assert "score.matrix" in dict(attention.named_parameters())
    assert MultiHeadAttention(WIDTH, HEADS, score=ScaledDot(cap=5.0)).score.cap == 5.0
    own = MultiHeadAttention(WIDTH, HEADS, score=lambda q, k: q @ k.mT)
    assert own(torch.randn(BATCH, QUERIES, WIDTH)).shape == (BATCH, QUERIES, WIDTH)


def test_values_given_with_key_values_are_refused():
    attention, words = MultiHeadAttention(WIDTH, heads=HEADS), torch.randn(2, 5, WIDTH)
    memory = attention.project_kv(words)
    with pytest.raises(
        RegardError, match="KeyValues have values of their own, but values= was also given"
    ):
        attention(words, memory, words)


@pytest.mark.parametrize("dropout", [1.5, -0.1, float("nan")])
def test_dropout_that_is_no_probability_is_refused(dropout):
    with pytest.raises(RegardError, match=f"probability from 0 to 1, but it is {dropout}"):
        MultiHeadAttention(WIDTH, HEADS, dropout=dropout)


def test_alibi_of_fewer_queries_than_keys_is_refused_with_what_takes_them():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    message = "as many queries as keys, but there are 1 queries and 7 keys; `step` attends"
    with pytest.raises(RegardError, match=message):
        attention(torch.randn(BATCH, 1, WIDTH), torch.randn(BATCH, KEYS, WIDTH))


def test_step_of_another_width_is_refused_by_the_name_of_its_argument():
    with pytest.raises(RegardError, match="queries must have a width of 12"):
        MultiHeadAttention(WIDTH, HEADS).step(torch.randn(BATCH, 1, WIDTH - 1), KVCache())
