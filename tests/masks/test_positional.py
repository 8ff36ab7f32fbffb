import math
from itertools import product

import numpy as np
import pytest
import torch

from regard import masks
from regard.errors import RegardError
from regard.masks import AttentionShape, causal, lengths, prefix, window

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7
RANKS = [(), (BATCH,), (BATCH, HEADS), (4, BATCH, HEADS)]
# the key at the first query's own position
STARTS = {"first": 0, "last": KEYS - QUERIES, 3: 3, -1: -1}


def evaluate(rule, *shape):
    """Return rule(*index) for every index of a shape."""
    return torch.tensor([rule(*index) for index in product(*map(range, shape))]).reshape(shape)


@pytest.mark.parametrize("batch", RANKS, ids=str)
@pytest.mark.parametrize(("align", "start"), STARTS.items())
def test_causal_allows_keys_up_to_the_own_position(batch, align, start):
    expected = evaluate(lambda *at: at[-1] <= at[-2] + start, *batch, QUERIES, KEYS)
    assert causal(align).to_tensor(QUERIES, KEYS, batch).equal(expected)


@pytest.mark.parametrize("batch", RANKS, ids=str)
@pytest.mark.parametrize(("align", "start"), STARTS.items())
def test_window_allows_keys_within_its_reach(batch, align, start):
    def is_near(*at):
        return at[-2] + start - 2 <= at[-1] <= at[-2] + start + 1

    expected = evaluate(is_near, *batch, QUERIES, KEYS)
    assert window(2, 1, align).to_tensor(QUERIES, KEYS, batch).equal(expected)


@pytest.mark.parametrize("make", [causal, lambda align=None: window(9, 0, align)])
def test_equally_many_queries_and_keys_are_aligned_at_both_ends(make):
    expected = torch.ones(KEYS, KEYS).tril().bool()
    assert make().to_tensor(KEYS).equal(expected)
    assert make("first").to_tensor(KEYS).equal(expected)
    assert make("last").to_tensor(KEYS).equal(expected)


def test_window_reaches_as_far_ahead_as_behind_by_default():
    assert window(2).to_tensor(KEYS).equal(window(2, ahead=2).to_tensor(KEYS))
    assert window(0).to_tensor(KEYS).equal(torch.eye(KEYS).bool()), "0 allows the own key alone"


@pytest.mark.parametrize(
    ("batch", "without_head"), [((2,), (2,)), ((2, 3), (2,)), ((4, 2, 3), (4, 2))]
)
def test_align_may_differ_between_batch_items(batch, without_head):
    starts = torch.randint(KEYS, without_head)

    def ahead(*at):
        """Count the keys from a query's own position to a key."""
        return at[-1] - at[-2] - int(starts[at[: len(without_head)]])

    behind = evaluate(lambda *at: ahead(*at) <= 0, *batch, QUERIES, KEYS)
    near = evaluate(lambda *at: abs(ahead(*at)) <= 1, *batch, QUERIES, KEYS)
    assert causal(starts).to_tensor(QUERIES, KEYS, batch).equal(behind)
    assert window(1, align=starts).to_tensor(QUERIES, KEYS, batch).equal(near)


def test_align_may_be_a_list():
    expected = causal(torch.tensor([4, 1])).to_tensor(QUERIES, KEYS, (BATCH,))
    assert causal([4, 1]).to_tensor(QUERIES, KEYS, (BATCH,)).equal(expected)


def test_offset_of_a_cache_aligns_the_first_query():
    shape = AttentionShape(2, KEYS, (BATCH,), offset=5)
    behind = evaluate(lambda q, k: k <= q + 5, 2, KEYS)
    near = evaluate(lambda q, k: abs(k - q - 5) <= 1, 2, KEYS)
    causal().check(shape)
    assert causal().materialize(shape).equal(behind)
    assert window(1).materialize(shape).equal(near)
    assert causal("first").materialize(shape).equal(evaluate(lambda q, k: k <= q, 2, KEYS))


@pytest.mark.parametrize(("name", "make"), [("causal", causal), ("window", lambda: window(1))])
def test_unequal_lengths_without_align_are_refused(name, make):
    message = rf"{name}\(\) needs as many.*5 queries and 7 keys; align='first'.*align='last'"
    with pytest.raises(RegardError, match=message):
        make().to_tensor(QUERIES, KEYS)
    with pytest.raises(RegardError, match=message):
        (lengths([1, 2]) & ~make()).to_tensor(QUERIES, KEYS, (BATCH,))


@pytest.mark.parametrize(
    "mask",
    [
        "causal()",
        "causal(align='last')",
        "causal(align=-3)",
        "causal(align=[4, 1])",
        "window(2)",
        "window(2, ahead=0)",
        "window(0, ahead=3, align='first')",
        "window(1, align=[0, 2])",
    ],
)
def test_repr_evaluates_to_the_mask(mask):
    assert repr(eval(mask, vars(masks))) == mask


def test_repr_of_many_alignments_shows_their_number():
    assert repr(causal(torch.arange(9))) == "causal(align=9 values)"


def test_explain_names_the_mask():
    expected = "query 1 may not attend to key 2: masked by causal()"
    assert causal().explain(query=1, key=2) == expected
    assert causal().explain(query=2, key=1) == "query 2 may attend to key 1"
    assert window(1).explain(0, 2).endswith("masked by window(1)")


@pytest.mark.parametrize("mask", [causal(), causal("last"), window(1), window(1, align="last")])
@pytest.mark.parametrize("offset", [0, 2])
def test_explain_agrees_with_the_materialized_mask(mask, offset):
    materialized = mask.materialize(AttentionShape(QUERIES, QUERIES + offset, offset=offset))
    for query, key in product(range(QUERIES), range(QUERIES + offset)):
        sentence = mask.explain(query, key, offset=offset)
        assert ("may attend" in sentence) == bool(materialized[query, key]), sentence


def test_explain_of_a_long_sequence_needs_no_matrix():
    mask = causal() & window(10) & prefix(10**7)
    expected = "query 0 may not attend to key 3000000: masked by causal() and window(10)"
    assert mask.explain(0, 3_000_000) == expected  # the whole mask has 9e12 pairs
    assert mask.explain(3_000_000, 2_999_999) == "query 3000000 may attend to key 2999999"


@pytest.mark.parametrize("reach", [{"behind": 2**63}, {"behind": 1, "ahead": 10**30}])
def test_window_beyond_64_bits_is_refused(reach):
    with pytest.raises(RegardError, match="must be at most 9223372036854775807, but it is"):
        window(**reach)


def test_explain_uses_the_alignment_of_the_batch_item():
    mask = causal([0, 2])
    assert "may not attend" in mask.explain(0, 2, batch=0)
    assert "may attend" in mask.explain(0, 2, batch=1)


def test_causal_is_all_true_when_every_row_sees_every_key():
    step = AttentionShape(1, KEYS, offset=KEYS - 1)
    assert causal().is_all_true(step)
    assert causal("last").is_all_true(step)
    assert not causal("first").is_all_true(step)
    whole = AttentionShape(KEYS, KEYS)
    assert not causal().is_all_true(whole)
    assert causal().is_all_true(whole.with_rows(KEYS - 1, 1))
    assert not causal().is_all_true(whole.with_rows(KEYS - 2, 2))


def test_is_causal_holds_for_causal_aligned_at_the_first_key_alone():
    square, wide = AttentionShape(KEYS, KEYS), AttentionShape(QUERIES, KEYS)
    assert causal().is_causal(square)
    assert causal("first").is_causal(wide)
    assert causal("last").is_causal(square)
    assert not causal("last").is_causal(wide)
    assert not causal().is_causal(AttentionShape(1, KEYS, offset=6))
    assert not causal([0, 0]).is_causal(AttentionShape(KEYS, KEYS, (BATCH,)))
    assert not window(1).is_causal(square)
    assert not (causal() & causal()).is_causal(square)


@pytest.mark.parametrize("align", ["middle", 1.5, torch.tensor([0.5]), [0.5, 1.0], True, [True]])
@pytest.mark.parametrize("make", [causal, lambda align: window(1, align=align)])
def test_align_of_a_wrong_type_is_refused(make, align, unchecked):
    with pytest.raises(RegardError, match="align must be 'first', 'last', a key's index or one"):
        make(align)


def test_align_of_another_batch_size_is_refused():
    with pytest.raises(RegardError, match=r"align must have the shape \(2,\).*\(3,\)"):
        causal([0, 1, 2]).to_tensor(QUERIES, KEYS, (BATCH, HEADS))


@pytest.mark.parametrize(("reach", "name"), [((-1,), "behind"), ((1, -2), "ahead")])
def test_negative_window_is_refused(reach, name):
    with pytest.raises(RegardError, match=f"{name} must be 0 or more, but it is {reach[-1]}"):
        window(*reach)


@pytest.mark.parametrize("reach", [1.5, 1.0, math.nan, True, "1", None, torch.tensor(1)])
def test_window_of_a_wrong_type_is_refused(reach, unchecked):
    with pytest.raises(TypeError, match="behind must be an integer, but it is "):
        window(reach)
    if reach is not None:
        with pytest.raises(TypeError, match="ahead must be an integer, but it is "):
            window(1, ahead=reach)


def test_integers_of_numpy_are_accepted(unchecked):
    two = np.int64(2)
    assert repr(window(two, two + 1)) == "window(2, ahead=3)"
    assert repr(causal(two)) == "causal(align=2)"
