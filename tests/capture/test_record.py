import pytest
import torch

from regard.capture import CapturedAttention
from regard.capture.calls import MaterializedWeights
from regard.capture.records import RecordBuilder, StoredWeights


def new_builder(kind="causal", keep="auto", heads=(0, 1, 2), **settings):
    record = CapturedAttention(
        name="layer",
        call_site="model.py:1",
        call=0,
        kind=kind,
        heads=list(heads),
        num_heads=3,
        stored=StoredWeights(keep, **settings),
    )
    return RecordBuilder(record)


@pytest.fixture
def generation():
    """Causal weights (2, 3, 6, 6), and the calls of a prompt of three rows and three steps."""
    weights = torch.rand(2, 3, 6, 6).tril()
    weights = weights / weights.sum(-1, keepdim=True)
    values = torch.randn(2, 3, 6, 4)
    ranges = [(0, 3), (3, 4), (4, 5), (5, 6)]
    calls = [MaterializedWeights(weights[:, :, a:b, :b], values[:, :, :b]) for a, b in ranges]
    return weights, calls


def test_steps_are_appended_by_position(generation):
    weights, (prompt, *steps) = generation
    builder = new_builder()
    builder.append(prompt)
    for step in steps:
        assert builder.is_next_step(step, "causal")
        builder.append_step(step)
    assert builder.record.steps == 4
    record = builder.record
    assert (record.batch_size, record.num_queries, record.num_keys) == (2, 6, 6)
    assert torch.equal(builder.record.weights, weights)


def test_single_row_becomes_causal_with_its_second_step(generation):
    weights, (prompt, *_) = generation
    builder = new_builder("self")
    builder.append(MaterializedWeights(weights[:, :, :1, :1], prompt.values[:, :, :1]))
    second = MaterializedWeights(weights[:, :, 1:2, :2], prompt.values[:, :, :2])
    assert builder.is_next_step(second, "causal")
    builder.append_step(second)
    assert builder.record.kind == "causal"


@pytest.mark.parametrize("case", ["other keys", "gap", "cut end", "other batch", "reordered rows"])
def test_unrelated_call_does_not_continue(generation, case):
    weights, (prompt, step, later, _) = generation
    row, values = weights[:, :, 3:4, :4], step.values
    builder = new_builder()
    builder.append(prompt)
    call = {
        "other keys": MaterializedWeights(row, torch.randn_like(values)),
        "gap": later,
        "cut end": MaterializedWeights(row[..., 1:], values[:, :, [0, 1, 3]]),
        "other batch": MaterializedWeights(row[:1], values[:1]),
        "reordered rows": MaterializedWeights(row.flip(0), values.flip(0)),
    }[case]
    assert builder.is_next_step(step, "causal") and not builder.is_next_step(call, "causal")


@pytest.mark.parametrize("window", [2, 3])
def test_summarized_steps_of_a_sliding_window_equal_the_full_pass(window):
    count, values = 9, torch.randn(2, 3, 9, 4)
    rows, columns = torch.arange(count)[:, None], torch.arange(count)
    visible = (columns <= rows) & (columns > rows - window)
    weights = torch.randn(2, 3, count, count).masked_fill(~visible, -torch.inf).softmax(-1)
    builder, full = (new_builder(keep="summary") for _ in range(2))
    builder.append(MaterializedWeights(weights[:, :, :4, :4], values[:, :, :4]))
    for n in range(4, count):
        keys = slice(n + 1 - window, n + 1)
        step = MaterializedWeights(weights[:, :, n : n + 1, keys], values[:, :, keys])
        assert builder.is_next_step(step, "causal")
        builder.append_step(step)
    full.append(MaterializedWeights(weights, values))
    actual, expected = (
        x.summary._replace(top_keys=x.summary.top_keys * (x.summary.top_weights > 0))
        for x in (builder.record, full.record)
    )
    for name, field in expected._asdict().items():
        torch.testing.assert_close(getattr(actual, name), field)
    assert torch.equal(builder.record.value_norms, full.record.value_norms)


def test_cache_cut_at_its_end_is_not_a_sliding_window():
    values = torch.randn(2, 3, 2, 4)[:, :, [0, 1, 1, 1, 1, 1]]  # one token repeated
    builder = new_builder()
    builder.append(MaterializedWeights(torch.rand(2, 3, 6, 6).tril(), values))
    cut = torch.cat([values[:, :, :-1], torch.randn(2, 3, 1, 4)], dim=2)
    assert not builder.is_next_step(MaterializedWeights(torch.rand(2, 3, 1, 6), cut), "causal")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_keys_with_one_large_element_are_distinguished(dtype):
    values = torch.randn(2, 2, 3, 6, 64).to(dtype)
    values[..., 0] += 12
    builder = new_builder()
    builder.append(MaterializedWeights(torch.rand(2, 3, 5, 5).tril(), values[0, :, :, :5]))
    step = torch.rand(2, 3, 1, 6)
    assert builder.is_next_step(MaterializedWeights(step, values[0]), "causal")
    assert not builder.is_next_step(MaterializedWeights(step, values[1]), "causal")


def test_single_queries_over_the_same_memory_are_steps_of_cross_attention():
    memory, weights = torch.randn(2, 3, 7, 4), torch.rand(2, 3, 4, 7).softmax(-1)
    builder = new_builder("cross")
    builder.append(MaterializedWeights(weights[:, :, :1], memory))
    for n in range(1, 4):
        step = MaterializedWeights(weights[:, :, n : n + 1], memory)
        assert builder.is_next_step(step, "cross")
        builder.append_step(step)
    assert torch.equal(builder.record.weights, weights)
    assert not builder.is_next_step(MaterializedWeights(weights[:, :, :1], memory + 1), "cross")
    assert not builder.is_next_step(MaterializedWeights(weights[:, :, :2], memory), "cross")


def test_equal_memory_in_other_storage_is_no_step():
    memory, weights = torch.randn(2, 3, 7, 4), torch.rand(2, 3, 1, 7).softmax(-1)
    builder = new_builder("cross")
    builder.append(MaterializedWeights(weights, memory))
    assert builder.is_next_step(MaterializedWeights(weights, memory[:]), "cross")
    assert not builder.is_next_step(MaterializedWeights(weights, memory.clone()), "cross")


def test_auto_summarizes_once_there_are_too_many_weights(generation):
    weights, calls = generation
    builder = new_builder(max_full_weights=2 * 3 * (9 + 4 + 5))
    for call in calls[:3]:
        builder.append(call)
    assert builder.record.weights is not None and builder.record.summary is None
    builder.append(calls[3])
    assert builder.record.weights is None
    torch.testing.assert_close(builder.record.summary.received, weights.sum(-2) / 6)
    assert builder.record.storage == "top 8 keys and tiles"


def mean_distance(weights):
    queries, keys = weights.shape[-2:]
    distances = (torch.arange(keys) - torch.arange(queries)[:, None]).abs()
    return (weights * distances).sum(-1)


@pytest.mark.parametrize("max_full_weights", [0, 2 * 3 * 7 * 3])  # summarized at once, or later
def test_distance_in_cross_attention_is_measured_from_the_start(max_full_weights):
    memory, weights = torch.randn(2, 3, 7, 4), torch.rand(2, 3, 4, 7).softmax(-1)
    full, stepwise = (new_builder("cross", max_full_weights=max_full_weights) for _ in range(2))
    full.append(MaterializedWeights(weights, memory))
    for n in range(4):
        stepwise.append(MaterializedWeights(weights[:, :, n : n + 1], memory))
    torch.testing.assert_close(full.record.summary.distance, mean_distance(weights))
    torch.testing.assert_close(stepwise.record.summary.distance, mean_distance(weights))


def test_distance_in_a_static_cache_is_measured_from_the_position_of_the_query():
    weights, values = torch.zeros(2, 3, 5, 9), torch.randn(2, 3, 9, 4)
    weights[..., :5] = torch.rand(5, 5).tril()
    builder = new_builder(max_full_weights=2 * 3 * 9 * 4)
    for rows in (slice(0, 3), slice(3, 4), slice(4, 5)):
        builder.append(MaterializedWeights(weights[:, :, rows], values, offset=rows.start))
    torch.testing.assert_close(builder.record.summary.distance, mean_distance(weights))


@pytest.mark.parametrize("keep, in_full", [("all", True), ("summary", False), ("auto", True)])
def test_keep_chooses_weights_or_summary(generation, keep, in_full):
    builder = new_builder(keep=keep)
    builder.append(generation[1][0])
    assert (builder.record.weights is not None) == in_full
    assert (builder.record.summary is None) == in_full


def test_selected_heads_are_kept_in_their_order(generation):
    weights, (prompt, *_) = generation
    builder = new_builder(heads=[2, 0])
    builder.append(prompt)
    assert torch.equal(builder.record.weights, weights[:, [2, 0], :3, :3])
    assert builder.record.storage == "heads 2, 0 of 3, all weights"
    assert builder.record.value_norms.shape == (2, 2, 3)


def test_key_is_fully_masked_only_if_every_step_masks_it():
    weights = torch.ones(1, 3, 3, 3).tril()
    weights[..., 1] = 0
    builder = new_builder()
    for n in range(3):
        step = weights[:, :, n : n + 1, : n + 1]
        builder.append(MaterializedWeights(step, has_mask=True))
    assert builder.record.fully_masked_keys.tolist() == [[False, True, False]]
    builder.append(MaterializedWeights(torch.ones(1, 3, 1, 4)))
    assert not builder.record.fully_masked_keys.any()
