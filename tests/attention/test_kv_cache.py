import math
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import KeyValues, KVCache, MultiHeadAttention, attend
from regard.attention.kv_cache import _Room

BATCH, HEADS, WIDTH, VALUE = 2, 3, 12, 6


def rows(count, batch=BATCH, **settings):
    """Make that many new keys and values."""
    return (
        torch.randn(batch, HEADS, count, WIDTH, **settings),
        torch.randn(batch, HEADS, count, VALUE, **settings),
    )


def holds(cache, keys, values):
    return len(cache) == keys.shape[-2] and cache.keys.equal(keys) and cache.values.equal(values)


def joined(*parts):
    keys, values = zip(*parts, strict=True)
    return torch.cat(keys, -2), torch.cat(values, -2)


def grown(*parts):
    cache = KVCache()
    for part in parts:
        cache = cache.extend(*part)
    return cache


def test_a_cache_holds_all_rows_in_the_order_they_came():
    parts = [rows(count) for count in (4, 1, 0, 1, 3, 1, 1, 9)]
    assert holds(grown(*parts), *joined(*parts))


def test_extending_leaves_the_shorter_cache_as_it_was():
    first, second, third = rows(3), rows(1), rows(2)
    short = grown(first, second)
    kept = short.keys, short.values
    longer = short.extend(*third)
    assert holds(longer, *joined(first, second, third))
    assert holds(short, *joined(first, second))
    assert kept[0].equal(joined(first, second)[0]), "what was read before must not change"


def test_two_branches_of_one_cache_do_not_see_each_other():
    trunk = grown(rows(3), rows(1))  # with room to spare, which both would like to use
    assert "4 of 8 rows" in repr(trunk)
    stem = trunk.keys.clone(), trunk.values.clone()
    left, right, leaf = rows(1), rows(1), rows(1)
    one, other = trunk.extend(*left), trunk.extend(*right)
    longer = one.extend(*leaf)
    assert holds(one, *joined(stem, left))
    assert holds(other, *joined(stem, right))
    assert holds(longer, *joined(stem, left, leaf))
    assert holds(trunk, *stem)


acts = st.lists(
    st.tuples(st.sampled_from(["extend", "reorder"]), st.integers(0, 99), st.integers(0, 3)),
    max_size=12,
)


@given(acts, st.booleans())
def test_whatever_is_done_to_one_cache_no_other_changes(acts, learning):
    """Keep beside each cache what it should hold, made with plain copies."""
    start = rows(2, requires_grad=learning)
    pool = [(KVCache(), None), (KVCache(*start), start)]
    for act, which, number in acts:
        cache, want = pool[which % len(pool)]
        if act == "extend":
            new = rows(number, len(want[0]) if want else BATCH)
            pool.append((cache.extend(*new), joined(want, new) if want else new))
        elif want is not None:
            order = torch.randint(len(want[0]), (number + 1,))
            pool.append((cache.reorder(order), (want[0][order], want[1][order])))
    for cache, want in pool:
        assert holds(cache, *want) if want else len(cache) == 0


def test_step_by_step_the_room_moves_only_a_few_times():
    cache, places, steps = KVCache(), set(), 1000
    kept = []  # so that no room is given back and taken again at the same place
    for _ in range(steps):
        cache = cache.extend(*rows(1))
        kept.append(cache)
        places.add(cache.keys.data_ptr())
    assert len(places) <= math.log2(steps) + 2
    assert len(cache) == steps


def test_a_step_writes_its_rows_behind_the_others_without_copying_them():
    cache = grown(rows(3), rows(1))
    longer = cache.extend(*rows(1))
    assert longer.keys.data_ptr() == cache.keys.data_ptr()
    assert longer.values.data_ptr() == cache.values.data_ptr()


def test_rows_that_were_handed_over_are_never_written_to():
    first = rows(3)
    before = first[0].clone(), first[1].clone()
    grown(first, rows(1), rows(1)).reorder(torch.tensor([1, 0])).extend(*rows(2))
    assert first[0].equal(before[0])
    assert first[1].equal(before[1])


@pytest.mark.parametrize("order", [[1, 0], [0, 0], [1], [1, 1, 0, 1]], ids=str)
@pytest.mark.parametrize("learning", [False, True])
def test_reordering_picks_sentences(order, learning):
    parts = [rows(3, requires_grad=learning), rows(1), rows(1)]
    keys, values = joined(*parts)
    cache = grown(*parts)
    picked = cache.reorder(torch.tensor(order))
    assert holds(picked, keys[order], values[order])
    assert holds(cache, keys, values)
    new = rows(2, len(order))
    assert holds(picked.extend(*new), *joined((keys[order], values[order]), new))


@pytest.mark.parametrize("learning", [False, True])
def test_picking_takes_sentences_and_of_each_some_keys(learning):
    keys, values = rows(5, batch=3, requires_grad=learning)
    sentences, places = torch.tensor([2, 0]), torch.tensor([[4, 1, 1], [0, 2, 3]])
    cache = grown((keys, values))
    picked = cache.select(sentences, places)
    expected = [
        torch.stack([x[s][:, p] for s, p in zip(sentences, places, strict=True)])
        for x in (keys, values)
    ]
    assert holds(picked, *expected)
    new = rows(2)
    assert holds(picked.extend(*new), *joined(expected, new))
    assert holds(cache, keys, values)


def test_a_memory_is_reordered_as_a_cache_is():
    keys, values = rows(4)
    order = torch.tensor([1, 1, 0])
    picked = KeyValues(keys, values).reorder(order)
    assert picked.keys.equal(keys[order])
    assert picked.values.equal(values[order])


def looking_back(caches, parts, queries):
    """Look from each step at all keys so far, and add everything up."""
    total = torch.zeros(())
    for step, query in enumerate(queries):
        keys, values = (
            (caches[step].keys, caches[step].values) if caches else joined(*parts[: step + 1])
        )
        # the dense path keeps the very rows of the cache for the backward pass
        total = total + (attend(query, keys, values, backend="dense") ** 2).sum()
    return total


@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize("learning", ["keys", "values", "queries", "all"])
def test_gradients_flow_through_a_cache_to_every_step(learning, reordered):
    steps = 6  # enough for rows that are written into spare room
    parts = [rows(1) for _ in range(steps)]
    queries = [torch.randn(BATCH, HEADS, 1, WIDTH) for _ in range(steps)]
    for numbers in queries if learning in ("queries", "all") else ():
        numbers.requires_grad_()
    for keys, values in parts:
        keys.requires_grad_(learning in ("keys", "all"))
        values.requires_grad_(learning in ("values", "all"))
    leaves = [x for x in (*queries, *(x for part in parts for x in part)) if x.requires_grad]
    order = torch.arange(BATCH)
    cache, caches = KVCache(), []
    for part in parts:
        cache = cache.extend(*part)
        cache = cache.reorder(order) if reordered else cache
        caches.append(cache)
    got = torch.autograd.grad(looking_back(caches, parts, queries), leaves)
    want = torch.autograd.grad(looking_back([], parts, queries), leaves)
    torch.testing.assert_close(got, want)


def test_a_cache_may_grow_on_while_an_earlier_look_waits_for_its_gradient():
    with torch.no_grad():
        cache = grown(rows(3), rows(1))
    query = torch.randn(BATCH, HEADS, 1, WIDTH, requires_grad=True)
    loss = attend(query, cache.keys, cache.values, backend="dense").sum()
    copied = attend(query, cache.keys.clone(), cache.values.clone(), backend="dense").sum()
    want = torch.autograd.grad(copied, query)
    with torch.no_grad():
        cache.extend(*rows(1))
    torch.testing.assert_close(torch.autograd.grad(loss, query), want)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_two_continuations_from_one_cache_give_what_each_gives_alone(mode):
    attention = MultiHeadAttention(WIDTH, heads=HEADS)
    words = torch.randn(2, BATCH, 5, WIDTH)
    words[1, :, :3] = words[0, :, :3]  # the same beginning
    with mode():
        cache = KVCache()
        for step in range(3):
            _, cache = attention.step(words[0, :, step : step + 1], cache)
        caches = [cache, cache]
        for step in (3, 4):
            for branch in (0, 1):
                new = words[branch, :, step : step + 1]
                got, caches[branch] = attention.step(new, caches[branch])
                alone, _ = attention.step(words[branch, :, : step + 1], KVCache())
                torch.testing.assert_close(got, alone[:, -1:])


def test_threads_that_go_on_from_one_cache_do_not_write_over_each_other():
    trunk = grown(*[large_rows(number) for number in (1, 2)])
    meeting = Barrier(4)

    def go_on(number):
        meeting.wait(20)
        return trunk.extend(*large_rows(number))

    for _ in range(10):
        with ThreadPoolExecutor(4) as threads:
            for number, cache in zip(range(4), threads.map(go_on, range(4)), strict=True):
                assert (cache.keys[..., len(trunk) :, :] == number).all()
                assert (cache.values[..., len(trunk) :, :] == -number).all()
                assert cache.keys[..., : len(trunk), :].equal(trunk.keys)


def large_rows(number):
    """Rows that take a while to be written."""
    keys = torch.full((64, 8, 9, 64), float(number))
    return keys, -keys


def test_rows_are_claimed_before_they_are_written(monkeypatch):
    """Another thread may go on from the same cache while one writes."""
    trunk, left, right = grown(rows(3), rows(1)), rows(1), rows(1)
    stem, others, write = (trunk.keys.clone(), trunk.values.clone()), [], _Room.write

    def write_late(room, *written):
        if not others:
            others.append(trunk)
            others[0] = trunk.extend(*right)
        write(room, *written)

    monkeypatch.setattr(_Room, "write", write_late)
    one = trunk.extend(*left)
    assert holds(one, *joined(stem, left))
    assert holds(others[0], *joined(stem, right))


@pytest.mark.parametrize("settings", [{"dtype": torch.float16}, {"dtype": torch.float64}])
def test_a_cache_keeps_the_dtype(settings):
    cache = grown(rows(2, **settings), rows(1, **settings)).reorder(torch.tensor([1, 0]))
    assert cache.keys.dtype == cache.values.dtype == settings["dtype"]


def test_a_cache_stays_on_its_device():
    cache = grown(rows(2, device="meta"), rows(1, device="meta"), rows(1, device="meta"))
    assert cache.keys.device.type == cache.values.device.type == "meta"
    assert cache.keys.shape == (BATCH, HEADS, 4, WIDTH)


def test_an_empty_cache_is_empty():
    assert len(KVCache()) == 0
    assert repr(KVCache()) == "Cache(empty)"
    assert len(KVCache().reorder(torch.tensor([1, 0]))) == 0
    for read in ("keys", "values"):
        with pytest.raises(ValueError, match="the cache is empty: it has no keys and values"):
            getattr(KVCache(), read)


def test_the_repr_tells_how_much_room_is_used():
    assert repr(KVCache(*rows(3))) == "Cache(3 of 3 rows in use)"


@pytest.mark.parametrize("half", [{"keys": rows(1)[0]}, {"values": rows(1)[1]}])
def test_keys_without_values_are_refused(half):
    with pytest.raises(ValueError, match="keys and values, or with neither, but one came"):
        KVCache(**half)


@pytest.mark.parametrize("start", [KVCache(), KVCache(*rows(2)), grown(rows(2), rows(1))], ids=repr)
def test_keys_and_values_must_be_as_many(start):
    with pytest.raises(ValueError, match=r"must be as many.*\(2, 3, 2, 12\) and \(2, 3, 1, 6\)"):
        start.extend(rows(2)[0], rows(1)[1])


@pytest.mark.parametrize("learning", [False, True])
def test_rows_that_do_not_follow_those_in_the_cache_are_refused(learning):
    cache = grown(rows(2, requires_grad=learning), rows(1))
    words = r"keys must have the shape \(2, 3, 1, 12\) to follow.*but it is \(1, 3, 1, 12\)"
    with pytest.raises(ValueError, match=words):
        cache.extend(*rows(1, batch=1))  # one sentence would be stretched to all of them
    keys, values = rows(1)
    with pytest.raises(ValueError, match=r"values must have the shape \(2, 3, 1, 6\)"):
        cache.extend(keys, values[..., :1])


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("gradients", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_a_cache_grown_in_inference_mode_goes_on_in_any_other(gradients, count):
    with torch.inference_mode():
        parts = [rows(3), rows(1)]
        cache = grown(*parts)
    before = len(cache)
    with gradients():
        new = rows(count)
        longer = cache.extend(*new)
        assert holds(longer, *joined(*parts, new))
        again = longer.reorder(torch.tensor([1, 0])).extend(*new)
        assert len(again) == before + 2 * count
    assert len(cache) == before and cache.keys.equal(joined(*parts)[0])
