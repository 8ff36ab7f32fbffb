import pytest
import torch

from regard import masks, watch
from regard.attention import KVCache, MultiHeadAttention
from regard.capture import record
from regard.capture.calls.base import Whole
from regard.capture.record import CapturedAttention


def fresh(kind="causal", keep="auto", heads=(0, 1, 2), offset=0):
    return CapturedAttention("layer", "model.py:1", 0, kind, keep, list(heads), 3, offset)


def steps(count=6, keys=None):
    """Cut causal weights into a first pass of three rows and single steps."""
    weights = torch.rand(2, 3, count, count).tril()
    weights = weights / weights.sum(-1, keepdim=True)
    values = torch.randn(2, 3, count, 4)
    cuts = [(0, 3), *((n, n + 1) for n in range(3, count))]
    return weights, [Whole(weights[:, :, a:b, :b], values[:, :, :b]) for a, b in cuts]


def test_steps_are_stitched_by_position():
    weights, asked = steps()
    look = fresh()
    look.add(asked[0])
    for step in asked[1:]:
        assert look.goes_on(step, "causal")
        look.go_on(step)
    assert look.steps == 4 and look.sizes == (2, 6, 6)
    assert torch.equal(look.weights, weights)


def test_a_first_step_of_one_row_becomes_causal_as_it_grows():
    weights, asked = steps()
    look = fresh("self")
    first = Whole(weights[:, :, :1, :1], asked[0].values[:, :, :1])
    look.add(first)
    second = Whole(weights[:, :, 1:2, :2], asked[0].values[:, :, :2])
    assert look.goes_on(second, "causal")
    look.go_on(second)
    assert look.kind == "causal"


@pytest.mark.parametrize("wrong", ["other keys", "gap", "cut", "other batch", "swapped sentences"])
def test_what_does_not_go_on_is_not_stitched(wrong):
    _, asked = steps()
    look = fresh()
    look.add(asked[0])
    step = asked[1]
    if wrong == "other keys":
        step = Whole(step.weights, torch.randn_like(step.values))
    elif wrong == "gap":
        step = asked[2]
    elif wrong == "cut":  # the last key was taken back, which no window does
        step = Whole(step.weights[..., 1:], step.values[:, :, [0, 1, 3]])
    elif wrong == "other batch":
        step = Whole(step.weights[:1], step.values[:1])
    else:
        step = Whole(step.weights.flip(0), step.values.flip(0))
    assert not look.goes_on(step, "causal")


@pytest.mark.parametrize("window", [2, 3])
def test_reduced_steps_of_a_sliding_window_are_those_of_the_whole_text(window):
    count, values = 9, torch.randn(2, 3, 9, 4)
    rows, columns = torch.arange(count)[:, None], torch.arange(count)
    near = (columns <= rows) & (columns > rows - window)
    weights = torch.randn(2, 3, count, count).masked_fill(~near, -torch.inf).softmax(-1)
    look, whole = (fresh(keep="reduced") for _ in range(2))
    look.add(Whole(weights[:, :, :4, :4], values[:, :, :4]))
    for n in range(4, count):
        first = n + 1 - window
        step = Whole(weights[:, :, n : n + 1, first : n + 1], values[:, :, first : n + 1])
        assert look.goes_on(step, "causal")
        look.go_on(step)
    whole.add(Whole(weights, values))
    got, want = (
        x.rows._replace(top_keys=x.rows.top_keys * (x.rows.top_weights > 0)) for x in (look, whole)
    )
    for name, numbers in want._asdict().items():
        torch.testing.assert_close(getattr(got, name), numbers)
    assert torch.equal(look.norms, whole.norms)


def test_a_cache_that_lost_its_end_is_not_taken_for_a_window():
    values = torch.randn(2, 3, 2, 4)[:, :, [0, 1, 1, 1, 1, 1]]  # one word again and again
    weights = torch.rand(2, 3, 6, 6).tril()
    look = fresh()
    look.add(Whole(weights, values))
    new = torch.cat([values[:, :, :-1], torch.randn(2, 3, 1, 4)], dim=2)
    assert not look.goes_on(Whole(torch.rand(2, 3, 1, 6), new), "causal")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_keys_with_one_large_number_are_told_apart(dtype):
    values = torch.randn(2, 2, 3, 6, 64).to(dtype)
    values[..., 0] += 12
    look = fresh()
    look.add(Whole(torch.rand(2, 3, 5, 5).tril(), values[0, :, :, :5]))
    step = torch.rand(2, 3, 1, 6)
    assert look.goes_on(Whole(step, values[0]), "causal")
    assert not look.goes_on(Whole(step, values[1]), "causal")


def test_steps_over_the_same_memory_are_stitched():
    memory, weights = torch.randn(2, 3, 7, 4), torch.rand(2, 3, 4, 7).softmax(-1)
    look = fresh("cross")
    look.add(Whole(weights[:, :, :1], memory))
    for n in (1, 2, 3):
        step = Whole(weights[:, :, n : n + 1], memory)
        assert look.goes_on(step, "cross")
        look.go_on(step)
    assert torch.equal(look.weights, weights)
    assert not look.goes_on(Whole(weights[:, :, :1], memory + 1), "cross")
    assert not look.goes_on(Whole(weights[:, :, :2], memory), "cross")


def test_auto_keeps_what_is_small_and_reduces_what_grew(monkeypatch):
    weights, asked = steps()
    monkeypatch.setattr(record, "WHOLE_UP_TO", 2 * 3 * (9 + 4 + 5))
    look = fresh()
    for step in asked[:3]:
        look.add(step)
    assert look.weights is not None and look.rows is None
    look.add(asked[3])
    assert look.weights is None
    received = weights.sum(-2) / 6
    torch.testing.assert_close(look.rows.received, received)
    assert "reduced" in look.kept


def distance(weights):
    queries, keys = weights.shape[-2:]
    away = (torch.arange(keys) - torch.arange(queries)[:, None]).abs()
    return (weights * away).sum(-1)


@pytest.mark.parametrize("most", [0, 2 * 3 * 7 * 3])  # reduced as they come, or later
def test_distances_to_another_text_are_counted_from_its_start(most, monkeypatch):
    monkeypatch.setattr(record, "WHOLE_UP_TO", most)
    memory, weights = torch.randn(2, 3, 7, 4), torch.rand(2, 3, 4, 7).softmax(-1)
    whole, look = fresh("cross"), fresh("cross")
    whole.add(Whole(weights, memory))
    for n in range(4):
        look.add(Whole(weights[:, :, n : n + 1], memory))
    torch.testing.assert_close(whole.rows.distance, distance(weights))
    torch.testing.assert_close(look.rows.distance, distance(weights))


def test_distances_in_a_cache_with_room_to_spare_are_counted_from_where_queries_stand(monkeypatch):
    weights, values = torch.zeros(2, 3, 5, 9), torch.randn(2, 3, 9, 4)
    weights[..., :5] = torch.rand(5, 5).tril()
    monkeypatch.setattr(record, "WHOLE_UP_TO", 2 * 3 * 9 * 4)
    look = fresh()
    for part in (slice(0, 3), slice(3, 4), slice(4, 5)):
        look.add(Whole(weights[:, :, part], values, offset=part.start))
    torch.testing.assert_close(look.rows.distance, distance(weights))


@pytest.mark.parametrize("keep, whole", [("all", True), ("reduced", False), ("auto", True)])
def test_what_is_asked_for_is_kept(keep, whole):
    look = fresh(keep=keep)
    look.add(steps()[1][0])
    assert (look.weights is not None) == whole
    assert (look.rows is None) == whole


def test_some_heads_only():
    weights, asked = steps()
    look = fresh(heads=[2, 0])
    look.add(asked[0])
    assert torch.equal(look.weights, weights[:, [2, 0], :3, :3])
    assert look.kept == "heads 2, 0 of 3, whole weights"
    assert look.norms.shape == (2, 2, 3)


def test_the_cache_of_regard_is_stitched():
    model = MultiHeadAttention(12, 4, key_heads=2)
    rows = torch.randn(2, 6, 12)
    with torch.no_grad():
        expected = model.look(rows, mask=masks.causal()).weights
        with watch(model) as seen:
            cache = KVCache()
            for part in (rows[:, :3], rows[:, 3:4], rows[:, 4:5], rows[:, 5:]):
                _, cache = model.step(part, cache)
    assert [(look.steps, look.kind) for look in seen] == [(4, "causal")]
    torch.testing.assert_close(seen[0].weights, expected)


def test_weights_outlive_the_model_and_hold_no_gradients():
    model, rows = MultiHeadAttention(12, 4), torch.randn(2, 6, 12, requires_grad=True)
    with watch(model) as seen:
        model(rows)
    assert not seen[0].weights.requires_grad


def test_what_was_hidden_in_every_step_is_hidden():
    weights = torch.ones(1, 3, 3, 3).tril()
    weights[..., 1] = 0
    look = fresh()
    for n in range(3):
        look.add(Whole(weights[:, :, n : n + 1, : n + 1], masked=True))
    assert look.hidden.tolist() == [[False, True, False]]
    look.add(Whole(torch.ones(1, 3, 1, 4)))
    assert not look.hidden.any()


def test_the_same_numbers_in_other_memory_are_no_step():
    memory, weights = torch.randn(2, 3, 7, 4), torch.rand(2, 3, 1, 7).softmax(-1)
    look = fresh("cross")
    look.add(Whole(weights, memory))
    assert look.goes_on(Whole(weights, memory[:]), "cross")
    assert not look.goes_on(Whole(weights, memory.clone()), "cross")
