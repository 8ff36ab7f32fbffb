import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from regard.attention import SCORE_NAMES, KeyValues, KVCache, MultiHeadAttention, ScaledDot
from regard.masks import causal, lengths, padding
from regard.positions import ALiBi, Rotary

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 12


def parted(rows, heads):
    return torch.stack(rows.chunk(heads, dim=-1), dim=1)


def test_each_head_attends_in_its_own_space_and_the_results_are_joined():
    attention = MultiHeadAttention(WIDTH, HEADS)
    queries, keys = torch.randn(BATCH, QUERIES, WIDTH), torch.randn(BATCH, KEYS, WIDTH)
    q, k, v = (
        parted(project(rows), HEADS)
        for project, rows in zip(
            (attention.query, attention.key, attention.value), (queries, keys, keys), strict=True
        )
    )
    theirs = scaled_dot_product_attention(q, k, v)
    joined = attention.out(torch.cat(theirs.unbind(1), dim=-1))
    torch.testing.assert_close(attention(queries, keys), joined)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_looking_never_changes_the_answer(score, training):
    attention = MultiHeadAttention(WIDTH, HEADS, score=score, dropout=0.3).train(training)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    torch.manual_seed(1)
    without = attention(rows, mask=lengths([2, 0]))
    torch.manual_seed(1)
    context, looks = attention.look(rows, mask=lengths([2, 0]))
    torch.testing.assert_close(context, without, rtol=0, atol=0)
    assert looks.shape == (BATCH, HEADS, QUERIES, QUERIES)
    assert (looks[1] == 0).all()
    assert (looks[0, :, :, 2:] == 0).all()


def test_weights_are_per_head_and_before_dropout():
    attention = MultiHeadAttention(512, 8, dropout=0.9).train()
    looks = attention.look(torch.randn(2, 5, 512)).weights
    assert looks.shape == (2, 8, 5, 5)
    torch.testing.assert_close(looks.sum(-1), torch.ones(2, 8, 5))


def test_a_batch_of_twenty_four_wide_rows_keeps_its_shape():
    attention = MultiHeadAttention(24, 8)
    assert attention(torch.ones(2, 100, 24), mask=lengths([3, 2])).shape == (2, 100, 24)


def test_the_first_row_of_causal_weights_sees_itself_only():
    looks = (
        MultiHeadAttention(WIDTH, HEADS)
        .look(torch.randn(BATCH, QUERIES, WIDTH), mask=causal())
        .weights
    )
    first = torch.zeros(QUERIES)
    first[0] = 1
    assert torch.equal(looks[:, :, 0], first.expand(BATCH, HEADS, QUERIES))


@pytest.mark.parametrize("key_heads", [1, 2, 6])
@pytest.mark.parametrize("positions", [None, "rotary", "alibi"])
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_step_by_step_with_a_cache_is_all_at_once(score, positions, key_heads):
    made = {"rotary": Rotary(4), "alibi": ALiBi(6), None: None}[positions]
    attention = MultiHeadAttention(24, 6, key_heads=key_heads, score=score, positions=made).eval()
    rows = torch.randn(BATCH, QUERIES + 3, 24)
    at_once = attention(rows, mask=causal())
    for sizes in ([1] * 8, [3, 1, 4], [8]):
        for gradients in (torch.no_grad, torch.enable_grad):
            cache, contexts = KVCache(), []
            with gradients():
                for part in rows.split(sizes, dim=1):
                    context, cache = attention.step(part, cache)
                    contexts.append(context)
            assert len(cache) == QUERIES + 3
            torch.testing.assert_close(torch.cat(contexts, dim=1), at_once)


def test_a_step_takes_a_mask_over_all_keys_so_far():
    attention = MultiHeadAttention(WIDTH, HEADS)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    keep = torch.tensor([[True, False, True, True, True], [True, True, False, False, True]])
    at_once = attention(rows, mask=causal() & padding(keep))
    cache = KVCache()
    for i in range(QUERIES):
        mask = causal() & padding(keep[:, : i + 1])
        context, cache = attention.step(rows[:, i : i + 1], cache, mask=mask)
        torch.testing.assert_close(context, at_once[:, i : i + 1])


def test_a_reordered_cache_goes_on_as_the_chosen_sentences():
    attention = MultiHeadAttention(WIDTH, HEADS)
    rows = torch.randn(3, QUERIES, WIDTH)
    order = torch.tensor([2, 0, 2, 1])
    with torch.no_grad():
        _, cache = attention.step(rows[:, :-1], KVCache())
        context, _ = attention.step(rows[order, -1:], cache.reorder(order))
    at_once = attention(rows[order], mask=causal())
    torch.testing.assert_close(context, at_once[:, -1:])


@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
def test_a_projected_memory_is_looked_at_without_projecting_anew(score, monkeypatch):
    attention = MultiHeadAttention(WIDTH, HEADS, score=score)
    queries, keys = torch.randn(BATCH, QUERIES, WIDTH), torch.randn(BATCH, KEYS, WIDTH)
    expected = attention(queries, keys, mask=lengths([3, 7]))
    memory = attention.project_kv(keys)
    assert isinstance(memory, KeyValues)

    def refuse(*_):
        raise AssertionError("keys or values were projected again")

    projections = [attention.key, attention.value]
    if score == "additive":
        projections.append(attention.score.project_keys)
    for projection in projections:
        monkeypatch.setattr(projection, "forward", refuse)
    torch.testing.assert_close(attention(queries, memory, mask=lengths([3, 7])), expected)
    single = attention(queries[:, 1], memory, mask=lengths([3, 7]))
    torch.testing.assert_close(single, expected[:, 1])
    two = attention(queries[[1, 0, 1]], memory.reorder(torch.tensor([1, 0, 1])))
    torch.testing.assert_close(two, attention(queries, memory)[[1, 0, 1]])


def test_widths_may_all_differ():
    attention = MultiHeadAttention(
        12, 2, key_heads=1, head_width=5, key_width=8, value_width=3, bias=False
    )
    context, looks = attention.look(
        torch.randn(2, 5, 12), torch.randn(2, 7, 8), torch.randn(2, 7, 3)
    )
    assert (context.shape, looks.shape) == ((2, 5, 12), (2, 2, 5, 7))
    assert attention.query.weight.shape == (10, 12)
    assert attention.key.weight.shape == (5, 8)
    assert attention.value.weight.shape == (5, 3)
    assert all(parameter.ndim == 2 for parameter in attention.parameters())


def test_rows_without_a_batch_keep_no_batch():
    attention = MultiHeadAttention(WIDTH, HEADS)
    rows = torch.randn(QUERIES, WIDTH)
    looked, batched = attention.look(rows, mask=causal()), attention.look(rows[None], mask=causal())
    torch.testing.assert_close(looked.context, batched.context[0])
    torch.testing.assert_close(looked.weights, batched.weights[0])
    single = attention.look(rows[0], torch.randn(KEYS, WIDTH))
    assert (single.context.shape, single.weights.shape) == ((WIDTH,), (HEADS, KEYS))


def test_a_memory_of_rows_without_a_batch_is_looked_at_without_one():
    attention = MultiHeadAttention(WIDTH, HEADS)
    queries, keys = torch.randn(QUERIES, WIDTH), torch.randn(KEYS, WIDTH)
    memory = attention.project_kv(keys)
    torch.testing.assert_close(attention(queries, memory), attention(queries, keys))
    torch.testing.assert_close(attention(queries[0], memory), attention(queries[0], keys))
    for got, wanted in zip(
        attention.look(queries, memory), attention.look(queries, keys), strict=True
    ):
        torch.testing.assert_close(got, wanted)


def test_rotary_attention_sees_distance_only():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=Rotary(4))
    word = torch.randn(1, 1, WIDTH).expand(1, 9, WIDTH)
    looks = attention.look(word).weights[0]
    shifted = looks[:, 3:, 3:] / looks[:, 3:, 3:].sum(-1, keepdim=True)
    unshifted = looks[:, :-3, :-3] / looks[:, :-3, :-3].sum(-1, keepdim=True)
    torch.testing.assert_close(shifted, unshifted)
    assert not torch.allclose(looks[:, 0, 0], looks[:, 0, 1])


def test_alibi_adds_to_a_bias():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    plain = MultiHeadAttention(WIDTH, HEADS)
    plain.load_state_dict(attention.state_dict())
    rows, bias = torch.randn(BATCH, QUERIES, WIDTH), torch.randn(QUERIES, QUERIES)
    nearness = ALiBi(HEADS)(QUERIES, QUERIES)
    torch.testing.assert_close(attention(rows, bias=bias), plain(rows, bias=nearness + bias))


@pytest.mark.parametrize("axes", [3, 4])
def test_alibi_adds_to_the_bias_of_each_sentence_apart(axes):
    batch = HEADS  # a batch of as many sentences as heads could be taken for heads
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    rows, bias = torch.randn(batch, QUERIES, WIDTH), torch.randn(batch, 1, QUERIES, QUERIES)
    bias = bias[:, 0] if axes == 3 else bias
    apart = [attention(rows[[n]], bias=bias[[n]]) for n in range(batch)]
    torch.testing.assert_close(attention(rows, bias=bias), torch.cat(apart))


def test_alibi_takes_steps_without_a_batch():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    rows, cache, steps = torch.randn(QUERIES, WIDTH), KVCache(), []
    for row in rows.split(1):
        context, cache = attention.step(row, cache)
        steps.append(context)
    torch.testing.assert_close(torch.cat(steps), attention(rows, mask=causal()))


def test_alibi_and_a_bias_for_a_batch_of_keys_alone():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    queries, keys = torch.randn(1, KEYS, WIDTH), torch.randn(3, KEYS, WIDTH)
    bias = torch.randn(3, KEYS, KEYS)
    want = attention(queries.expand(3, -1, -1), keys, bias=bias)
    torch.testing.assert_close(attention(queries, keys, bias=bias), want)


def test_a_bias_that_does_not_fit_is_told_of_beside_alibi_too():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    rows, bias = torch.randn(2, QUERIES, WIDTH), torch.zeros(QUERIES, QUERIES + 1)
    with pytest.raises(ValueError, match="bias must broadcast to .* but its shape is"):
        attention(rows, bias=bias)


def test_alibi_knows_its_heads_behind_any_number_of_batch_axes():
    attention = MultiHeadAttention(WIDTH, HEADS, positions=ALiBi(HEADS))
    rows, bias = torch.randn(2, HEADS, QUERIES, WIDTH), torch.randn(2, HEADS, QUERIES, QUERIES)
    for added in (None, bias):
        flat = attention(rows.flatten(0, 1), bias=None if added is None else added.flatten(0, 1))
        torch.testing.assert_close(attention(rows, bias=added), flat.unflatten(0, (2, HEADS)))


def test_one_head_without_projections_is_attend():
    from regard import attend

    attention = MultiHeadAttention(WIDTH, heads=1, bias=False)
    for projection in (attention.query, attention.key, attention.value, attention.out):
        nn.init.eye_(projection.weight)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    torch.testing.assert_close(attention(rows), attend(rows))


def test_nothing_is_kept_on_the_module():
    attention = MultiHeadAttention(WIDTH, HEADS, score="additive", dropout=0.5)
    before = set(vars(attention)) | {name for name, _ in attention.named_buffers()}
    attention.look(torch.randn(BATCH, QUERIES, WIDTH))
    attention.step(torch.randn(BATCH, 1, WIDTH), KVCache())
    assert set(vars(attention)) | {name for name, _ in attention.named_buffers()} == before


REFUSALS = [
    ({"heads": 5}, "12 / 5 leaves 2; 10 would fit, or head_width="),
    ({"heads": 0}, "heads must be 1 or more"),
    ({"heads": 6, "key_heads": 4}, "multiple of key_heads, but 6 / 4 leaves 2"),
    ({"heads": 24}, "12 / 24 leaves 12; 24 would fit"),
]


@pytest.mark.parametrize(("settings", "words"), REFUSALS)
def test_heads_that_do_not_divide_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        MultiHeadAttention(WIDTH, **settings)


def test_rows_of_another_width_are_refused_by_name():
    attention = MultiHeadAttention(WIDTH, HEADS)
    rows = torch.randn(BATCH, QUERIES, WIDTH)
    with pytest.raises(ValueError, match=r"queries must have a width of 12.*\(2, 5, 8\)"):
        attention(rows[..., :8], rows)
    with pytest.raises(ValueError, match="keys must have a width of 12"):
        attention(rows, rows[..., :8])
    with pytest.raises(ValueError, match="values must have a width of 12"):
        attention(rows, rows, rows[..., :8])
    with pytest.raises(ValueError, match="one axis fewer for a single query"):
        attention(rows[0, 0], rows)


def test_a_score_module_is_trained_with_the_heads():
    attention = MultiHeadAttention(WIDTH, HEADS, score="bilinear")
    assert "score.matrix" in dict(attention.named_parameters())
    assert MultiHeadAttention(WIDTH, HEADS, score=ScaledDot(cap=5.0)).score.cap == 5.0
    own = MultiHeadAttention(WIDTH, HEADS, score=lambda q, k: q @ k.mT)
    assert own(torch.randn(BATCH, QUERIES, WIDTH)).shape == (BATCH, QUERIES, WIDTH)


def test_a_memory_comes_with_its_values():
    attention, words = MultiHeadAttention(WIDTH, heads=HEADS), torch.randn(2, 5, WIDTH)
    memory = attention.project_kv(words)
    with pytest.raises(ValueError, match="a memory has values of its own, but values= came"):
        attention(words, memory, words)
