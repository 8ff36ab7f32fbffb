from itertools import product

import pytest
import torch

from regard import masks
from regard.masks import AttentionShape, causal, lengths, window
from regard.masks.positional import is_plain_causal

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7
RANKS = [(), (BATCH,), (BATCH, HEADS), (4, BATCH, HEADS)]
# the key on which the first query stands
STARTS = {"first": 0, "last": KEYS - QUERIES, 3: 3, -1: -1}


def pair_by_pair(rule, *shape):
    """Ask about each place of a shape, one after the other."""
    return torch.tensor([rule(*place) for place in product(*map(range, shape))]).reshape(shape)


@pytest.mark.parametrize("batch", RANKS, ids=str)
@pytest.mark.parametrize(("align", "start"), STARTS.items())
def test_causal_looks_at_keys_up_to_its_own_place(batch, align, start):
    want = pair_by_pair(lambda *at: at[-1] <= at[-2] + start, *batch, QUERIES, KEYS)
    assert causal(align).to_tensor(QUERIES, KEYS, batch).equal(want)


@pytest.mark.parametrize("batch", RANKS, ids=str)
@pytest.mark.parametrize(("align", "start"), STARTS.items())
def test_a_window_looks_so_far_behind_and_ahead(batch, align, start):
    def near(*at):
        return at[-2] + start - 2 <= at[-1] <= at[-2] + start + 1

    want = pair_by_pair(near, *batch, QUERIES, KEYS)
    assert window(2, 1, align).to_tensor(QUERIES, KEYS, batch).equal(want)


@pytest.mark.parametrize("make", [causal, lambda align=None: window(9, 0, align)])
def test_as_many_queries_as_keys_stand_on_each_other(make):
    want = torch.ones(KEYS, KEYS).tril().bool()
    assert make().to_tensor(KEYS).equal(want)
    assert make("first").to_tensor(KEYS).equal(want)
    assert make("last").to_tensor(KEYS).equal(want)


def test_a_window_reaches_as_far_ahead_as_behind_unless_told():
    assert window(2).to_tensor(KEYS).equal(window(2, ahead=2).to_tensor(KEYS))
    assert window(0).to_tensor(KEYS).equal(torch.eye(KEYS).bool()), "0 sees only itself"


@pytest.mark.parametrize(
    ("batch", "sentences"), [((2,), (2,)), ((2, 3), (2,)), ((4, 2, 3), (4, 2))]
)
def test_each_sentence_may_stand_on_a_key_of_its_own(batch, sentences):
    starts = torch.randint(KEYS, sentences)

    def ahead(*at):
        """Count the keys from a query's own place to a key."""
        return at[-1] - at[-2] - int(starts[at[: len(sentences)]])

    behind = pair_by_pair(lambda *at: ahead(*at) <= 0, *batch, QUERIES, KEYS)
    near = pair_by_pair(lambda *at: abs(ahead(*at)) <= 1, *batch, QUERIES, KEYS)
    assert causal(starts).to_tensor(QUERIES, KEYS, batch).equal(behind)
    assert window(1, align=starts).to_tensor(QUERIES, KEYS, batch).equal(near)


def test_a_list_of_places_is_as_good_as_a_tensor():
    want = causal(torch.tensor([4, 1])).to_tensor(QUERIES, KEYS, (BATCH,))
    assert causal([4, 1]).to_tensor(QUERIES, KEYS, (BATCH,)).equal(want)


def test_a_cache_says_where_the_first_query_stands():
    frame = AttentionShape(2, KEYS, (BATCH,), offset=5)
    behind = pair_by_pair(lambda q, k: k <= q + 5, 2, KEYS)
    near = pair_by_pair(lambda q, k: abs(k - q - 5) <= 1, 2, KEYS)
    causal().check(frame)
    assert causal().materialize(frame).equal(behind)
    assert window(1).materialize(frame).equal(near)
    assert causal("first").materialize(frame).equal(pair_by_pair(lambda q, k: k <= q, 2, KEYS))


@pytest.mark.parametrize(("word", "make"), [("causal", causal), ("window", lambda: window(1))])
def test_unequal_lengths_are_asked_how_they_line_up(word, make):
    words = rf"{word}\(\) needs as many.*5 queries and 7 keys; align='first'.*align='last'"
    with pytest.raises(ValueError, match=words):
        make().to_tensor(QUERIES, KEYS)
    with pytest.raises(ValueError, match=words):
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
def test_the_repr_can_be_read_back(mask):
    assert repr(eval(mask, vars(masks))) == mask


def test_the_repr_of_many_places_says_only_how_many():
    assert repr(causal(torch.arange(9))) == "causal(align=9 numbers)"


def test_explain_names_the_mask_that_hides():
    hidden = "query 1 may not look at key 2: hidden by causal()"
    assert causal().explain(query=1, key=2) == hidden
    assert causal().explain(query=2, key=1) == "query 2 may look at key 1"
    assert window(1).explain(0, 2).endswith("hidden by window(1)")


@pytest.mark.parametrize("mask", [causal(), causal("last"), window(1), window(1, align="last")])
@pytest.mark.parametrize("offset", [0, 2])
def test_explain_agrees_with_what_is_written_out(mask, offset):
    written = mask.materialize(AttentionShape(QUERIES, QUERIES + offset, offset=offset))
    for query, key in product(range(QUERIES), range(QUERIES + offset)):
        said = mask.explain(query, key, offset=offset)
        assert ("may look" in said) == bool(written[query, key]), said


def test_explain_takes_the_place_of_its_sentence():
    mask = causal([0, 2])
    assert "may not look" in mask.explain(0, 2, batch=0)
    assert "may look" in mask.explain(0, 2, batch=1)


def test_a_causal_mask_that_hides_nothing_says_so():
    step = AttentionShape(1, KEYS, offset=KEYS - 1)
    assert causal().is_all_true(step)
    assert causal("last").is_all_true(step)
    assert not causal("first").is_all_true(step)
    whole = AttentionShape(KEYS, KEYS)
    assert not causal().is_all_true(whole)
    assert causal().is_all_true(whole.with_rows(first=KEYS - 1, count=1))
    assert not causal().is_all_true(whole.with_rows(first=KEYS - 2, count=2))


def test_only_causal_with_its_corner_at_the_first_key_is_plain():
    square, wide = AttentionShape(KEYS, KEYS), AttentionShape(QUERIES, KEYS)
    assert is_plain_causal(causal(), square)
    assert is_plain_causal(causal("first"), wide)
    assert is_plain_causal(causal("last"), square)
    assert not is_plain_causal(causal("last"), wide)
    assert not is_plain_causal(causal(), AttentionShape(1, KEYS, offset=6))
    assert not is_plain_causal(causal([0, 0]), AttentionShape(KEYS, KEYS, (BATCH,)))
    assert not is_plain_causal(window(1), square)
    assert not is_plain_causal(None, square)


@pytest.mark.parametrize("align", ["middle", 1.5, torch.tensor([0.5]), [0.5, 1.0]])
@pytest.mark.parametrize("make", [causal, lambda align: window(1, align=align)])
def test_an_align_of_a_wrong_kind_is_refused(make, align, unchecked):
    with pytest.raises(ValueError, match="align must be 'first', 'last', a key's number or one"):
        make(align)


def test_an_align_for_another_number_of_sentences_is_refused():
    with pytest.raises(ValueError, match=r"align must have the shape \(2,\).*\(3,\)"):
        causal([0, 1, 2]).to_tensor(QUERIES, KEYS, (BATCH, HEADS))


@pytest.mark.parametrize(("reach", "name"), [((-1,), "behind"), ((1, -2), "ahead")])
def test_a_window_that_reaches_less_than_nothing_is_refused(reach, name):
    with pytest.raises(ValueError, match=f"{name} must be 0 or more, but it is {reach[-1]}"):
        window(*reach)
