import math
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import KeyValues, KVCache, MultiHeadAttention, attend
from regard.attention.kv_cache import _Buffer
from regard.errors import RegardError

BATCH, HEADS, WIDTH, VALUE = 2, 3, 12, 6


def rows(count, batch=BATCH, **settings):
    """Draw `count` new keys and values."""
    return (
        torch.randn(batch, HEADS, count, WIDTH, **settings),
        torch.randn(batch, HEADS, count, VALUE, **settings),
    )


def is_equal(cache, keys, values):
    return len(cache) == keys.shape[-2] and cache.keys.equal(keys) and cache.values.equal(values)


def concat(*parts):
    keys, values = zip(*parts, strict=True)
    return torch.cat(keys, -2), torch.cat(values, -2)


def extend_all(*parts):
    cache = KVCache()
    for part in parts:
        cache = cache.extend(*part)
    return cache


def test_cache_has_all_rows_in_order():
    parts = [rows(count) for count in (4, 1, 0, 1, 3, 1, 1, 9)]
    assert is_equal(extend_all(*parts), *concat(*parts))


def test_extend_leaves_the_shorter_cache_unchanged():
    first, second, third = rows(3), rows(1), rows(2)
    short = extend_all(first, second)
    keys_before = short.keys
    longer = short.extend(*third)
    assert is_equal(longer, *concat(first, second, third))
    assert is_equal(short, *concat(first, second))
    assert keys_before.equal(concat(first, second)[0]), "a view must not change"


def test_two_extensions_of_one_cache_are_independent():
    trunk = extend_all(rows(3), rows(1))  # with spare capacity for only one of them
    assert "4 of 8 rows" in repr(trunk)
    stem = trunk.keys.clone(), trunk.values.clone()
    left, right, leaf = rows(1), rows(1), rows(1)
    one, other = trunk.extend(*left), trunk.extend(*right)
    longer = one.extend(*leaf)
    assert is_equal(one, *concat(stem, left))
    assert is_equal(other, *concat(stem, right))
    assert is_equal(longer, *concat(stem, left, leaf))
    assert is_equal(trunk, *stem)


operations = st.lists(
    st.tuples(st.sampled_from(["extend", "reorder"]), st.integers(0, 99), st.integers(0, 3)),
    max_size=12,
)


@given(operations, st.booleans())
def test_operations_on_one_cache_never_change_another(operations, requires_grad):
    """Compare each cache with plain copies of what it should hold."""
    start = rows(2, requires_grad=requires_grad)
    pool = [(KVCache(), None), (KVCache(*start), start)]
    for operation, choice, count in operations:
        cache, expected = pool[choice % len(pool)]
        if operation == "extend":
            new = rows(count, len(expected[0]) if expected else BATCH)
            pool.append((cache.extend(*new), concat(expected, new) if expected else new))
        elif expected is not None:
            order = torch.randint(len(expected[0]), (count + 1,))
            pool.append((cache.reorder(order), (expected[0][order], expected[1][order])))
    for cache, expected in pool:
        assert is_equal(cache, *expected) if expected else len(cache) == 0


def test_thousand_steps_reallocate_the_buffer_a_few_times():
    cache, addresses, steps = KVCache(), set(), 1000
    caches = []  # kept alive, so that no address is reused
    for _ in range(steps):
        cache = cache.extend(*rows(1))
        caches.append(cache)
        addresses.add(cache.keys.data_ptr())
    assert len(addresses) <= math.log2(steps) + 2
    assert len(cache) == steps


def test_extend_within_capacity_does_not_copy():
    cache = extend_all(rows(3), rows(1))
    longer = cache.extend(*rows(1))
    assert longer.keys.data_ptr() == cache.keys.data_ptr()
    assert longer.values.data_ptr() == cache.values.data_ptr()


def test_rows_of_the_caller_are_never_written_to():
    first = rows(3)
    before = first[0].clone(), first[1].clone()
    extend_all(first, rows(1), rows(1)).reorder(torch.tensor([1, 0])).extend(*rows(2))
    assert first[0].equal(before[0])
    assert first[1].equal(before[1])


@pytest.mark.parametrize("order", [[1, 0], [0, 0], [1], [1, 1, 0, 1]], ids=str)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_reorder_selects_batch_items(order, requires_grad):
    parts = [rows(3, requires_grad=requires_grad), rows(1), rows(1)]
    keys, values = concat(*parts)
    cache = extend_all(*parts)
    selected = cache.reorder(torch.tensor(order))
    assert is_equal(selected, keys[order], values[order])
    assert is_equal(cache, keys, values)
    new = rows(2, len(order))
    assert is_equal(selected.extend(*new), *concat((keys[order], values[order]), new))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_select_takes_batch_items_and_some_keys_of_each(requires_grad):
    keys, values = rows(5, batch=3, requires_grad=requires_grad)
    indices, kept_keys = torch.tensor([2, 0]), torch.tensor([[4, 1, 1], [0, 2, 3]])
    cache = extend_all((keys, values))
    selected = cache.select(indices, kept_keys)
    expected = [
        torch.stack([x[i][:, k] for i, k in zip(indices, kept_keys, strict=True)])
        for x in (keys, values)
    ]
    assert is_equal(selected, *expected)
    new = rows(2)
    assert is_equal(selected.extend(*new), *concat(expected, new))
    assert is_equal(cache, keys, values)


def test_key_values_reorder_selects_batch_items():
    keys, values = rows(4)
    order = torch.tensor([1, 1, 0])
    selected = KeyValues(keys, values).reorder(order)
    assert selected.keys.equal(keys[order])
    assert selected.values.equal(values[order])


def total_attention(caches, parts, queries):
    """Attend from each step to all keys so far, and sum the squares."""
    total = torch.zeros(())
    for step, query in enumerate(queries):
        keys, values = (
            (caches[step].keys, caches[step].values) if caches else concat(*parts[: step + 1])
        )
        # the dense backend saves the cache's own rows for the backward pass
        total = total + (attend(query, keys, values, backend="dense") ** 2).sum()
    return total


@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize("needs_grad", ["keys", "values", "queries", "all"])
def test_gradients_flow_through_the_cache_to_every_step(needs_grad, reordered):
    steps = 6  # enough for rows that are written into spare capacity
    parts = [rows(1) for _ in range(steps)]
    queries = [torch.randn(BATCH, HEADS, 1, WIDTH) for _ in range(steps)]
    for query in queries if needs_grad in ("queries", "all") else ():
        query.requires_grad_()
    for keys, values in parts:
        keys.requires_grad_(needs_grad in ("keys", "all"))
        values.requires_grad_(needs_grad in ("values", "all"))
    leaves = [x for x in (*queries, *(x for part in parts for x in part)) if x.requires_grad]
    order = torch.arange(BATCH)
    cache, caches = KVCache(), []
    for part in parts:
        cache = cache.extend(*part)
        cache = cache.reorder(order) if reordered else cache
        caches.append(cache)
    computed = torch.autograd.grad(total_attention(caches, parts, queries), leaves)
    expected = torch.autograd.grad(total_attention([], parts, queries), leaves)
    torch.testing.assert_close(computed, expected)


def test_cache_may_be_extended_before_an_earlier_backward_pass():
    with torch.no_grad():
        cache = extend_all(rows(3), rows(1))
    query = torch.randn(BATCH, HEADS, 1, WIDTH, requires_grad=True)
    loss = attend(query, cache.keys, cache.values, backend="dense").sum()
    loss_of_copy = attend(query, cache.keys.clone(), cache.values.clone(), backend="dense").sum()
    expected = torch.autograd.grad(loss_of_copy, query)
    with torch.no_grad():
        cache.extend(*rows(1))
    torch.testing.assert_close(torch.autograd.grad(loss, query), expected)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_two_continuations_of_one_cache_agree_with_each_alone(mode):
    attention = MultiHeadAttention(WIDTH, heads=HEADS)
    words = torch.randn(2, BATCH, 5, WIDTH)
    words[1, :, :3] = words[0, :, :3]  # the same prefix
    with mode():
        cache = KVCache()
        for step in range(3):
            _, cache = attention.step(words[0, :, step : step + 1], cache)
        caches = [cache, cache]
        for step in (3, 4):
            for i in (0, 1):
                context, caches[i] = attention.step(words[i, :, step : step + 1], caches[i])
                expected, _ = attention.step(words[i, :, : step + 1], KVCache())
                torch.testing.assert_close(context, expected[:, -1:])


def test_threads_that_extend_one_cache_do_not_overwrite_each_other():
    trunk = extend_all(*[large_rows(number) for number in (1, 2)])
    barrier = Barrier(4)

    def extend(number):
        barrier.wait(20)
        return trunk.extend(*large_rows(number))

    for _ in range(10):
        with ThreadPoolExecutor(4) as threads:
            for number, cache in zip(range(4), threads.map(extend, range(4)), strict=True):
                assert (cache.keys[..., len(trunk) :, :] == number).all()
                assert (cache.values[..., len(trunk) :, :] == -number).all()
                assert cache.keys[..., : len(trunk), :].equal(trunk.keys)


def large_rows(number):
    """Make rows that take a while to write."""
    keys = torch.full((64, 8, 9, 64), float(number))
    return keys, -keys


def test_rows_are_reserved_before_they_are_written(monkeypatch):
    """Another thread may extend the same cache while one writes."""
    trunk, left, right = extend_all(rows(3), rows(1)), rows(1), rows(1)
    stem, others, write = (trunk.keys.clone(), trunk.values.clone()), [], _Buffer.write

    def write_late(buffer, *arguments):
        if not others:
            others.append(trunk)
            others[0] = trunk.extend(*right)
        write(buffer, *arguments)

    monkeypatch.setattr(_Buffer, "write", write_late)
    one = trunk.extend(*left)
    assert is_equal(one, *concat(stem, left))
    assert is_equal(others[0], *concat(stem, right))


@pytest.mark.parametrize("settings", [{"dtype": torch.float16}, {"dtype": torch.float64}])
def test_cache_keeps_the_dtype(settings):
    cache = extend_all(rows(2, **settings), rows(1, **settings)).reorder(torch.tensor([1, 0]))
    assert cache.keys.dtype == cache.values.dtype == settings["dtype"]


def test_cache_stays_on_its_device():
    cache = extend_all(rows(2, device="meta"), rows(1, device="meta"), rows(1, device="meta"))
    assert cache.keys.device.type == cache.values.device.type == "meta"
    assert cache.keys.shape == (BATCH, HEADS, 4, WIDTH)


def test_empty_cache_has_length_zero_and_no_keys():
    assert len(KVCache()) == 0
    assert repr(KVCache()) == "KVCache(empty)"
    assert len(KVCache().reorder(torch.tensor([1, 0]))) == 0
    for read in ("keys", "values"):
        with pytest.raises(RegardError, match="the cache is empty: extend it before reading"):
            getattr(KVCache(), read)


def test_repr_shows_the_use_of_the_buffer():
    assert repr(KVCache(*rows(3))) == "KVCache(3 of 3 rows used)"


@pytest.mark.parametrize("half", [{"keys": rows(1)[0]}, {"values": rows(1)[1]}])
def test_keys_without_values_are_refused(half):
    with pytest.raises(
        RegardError, match="both keys and values, or neither, but only one was given"
    ):
        KVCache(**half)


@pytest.mark.parametrize(
    "start", [KVCache(), KVCache(*rows(2)), extend_all(rows(2), rows(1))], ids=repr
)
def test_keys_and_values_of_different_numbers_are_refused(start):
    with pytest.raises(
        RegardError,
        match=r"must agree in batch, heads and number.*\(2, 3, 2, 12\) and \(2, 3, 1, 6\)",
    ):
        start.extend(rows(2)[0], rows(1)[1])


@pytest.mark.parametrize("requires_grad", [False, True])
def test_rows_of_another_shape_than_the_cache_are_refused(requires_grad):
    cache = extend_all(rows(2, requires_grad=requires_grad), rows(1))
    message = r"keys must have the shape \(2, 3, 1, 12\) to extend.*but it is \(1, 3, 1, 12\)"
    with pytest.raises(RegardError, match=message):
        cache.extend(*rows(1, batch=1))  # a batch of one would be broadcast
    keys, values = rows(1)
    with pytest.raises(RegardError, match=r"values must have the shape \(2, 3, 1, 6\)"):
        cache.extend(keys, values[..., :1])


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_cache_of_inference_mode_may_be_extended_in_any_mode(mode, count):
    with torch.inference_mode():
        parts = [rows(3), rows(1)]
        cache = extend_all(*parts)
    before = len(cache)
    with mode():
        new = rows(count)
        longer = cache.extend(*new)
        assert is_equal(longer, *concat(*parts, new))
        again = longer.reorder(torch.tensor([1, 0])).extend(*new)
        assert len(again) == before + 2 * count
    assert len(cache) == before and cache.keys.equal(concat(*parts)[0])


@pytest.mark.parametrize(("name", "index"), [("keys", 0), ("values", 1)])
@pytest.mark.parametrize("needs_grad", [False, True])
def test_rows_of_another_dtype_are_refused(name, index, needs_grad):
    cache, new = KVCache(*rows(3, requires_grad=needs_grad)), list(rows(1))
    new[index] = new[index].half()
    with pytest.raises(TypeError, match=f"{name} must be torch.float32 .*, but they are torch.flo"):
        cache.extend(*new)
