from itertools import product

import pytest
import torch

from regard import masks
from regard.errors import RegardError
from regard.masks import AttentionShape, causal, documents, lengths, padding, prefix

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7
# the axes before (query, key), and those of them that are not heads
RANKS = [((2,), (2,)), ((2, 3), (2,)), ((4, 2, 3), (4, 2))]
every_rank = pytest.mark.parametrize(("batch", "without_head"), RANKS)


def evaluate(rule, *shape):
    """Return rule(*index) for every index of a shape."""
    return torch.tensor([rule(*index) for index in product(*map(range, shape))]).reshape(shape)


def integers(limit, *shape):
    return torch.randint(limit, shape)


@every_rank
@pytest.mark.parametrize("mask", [lengths, prefix])
def test_one_count_per_batch_item_allows_its_first_keys(mask, batch, without_head):
    counts = integers(KEYS + 1, *without_head)
    expected = evaluate(
        lambda *at: at[-1] < int(counts[at[: len(without_head)]]), *batch, QUERIES, KEYS
    )
    assert mask(counts).to_tensor(QUERIES, KEYS, batch).equal(expected)


@every_rank
@pytest.mark.parametrize("mask", [lengths, prefix])
def test_one_count_per_query_allows_its_first_keys(mask, batch, without_head):
    counts = integers(KEYS + 1, *without_head, QUERIES)

    def is_allowed(*at):
        return at[-1] < int(counts[(*at[: len(without_head)], at[-2])])

    expected = evaluate(is_allowed, *batch, QUERIES, KEYS)
    assert mask(counts).to_tensor(QUERIES, KEYS, batch).equal(expected)


def test_counts_without_batch_are_one_for_all_or_one_per_query():
    assert lengths(3).to_tensor(QUERIES, KEYS).equal(evaluate(lambda q, k: k < 3, 5, 7))
    counts = [1, 0, 7, 2, 4]
    expected = evaluate(lambda q, k: k < counts[q], 5, 7)
    assert lengths(counts).to_tensor(QUERIES, KEYS).equal(expected)


def test_one_count_holds_for_every_batch_item():
    expected = evaluate(lambda b, h, q, k: k < 4, BATCH, HEADS, QUERIES, KEYS)
    for counts in (4, [4], torch.tensor(4)):
        assert lengths(counts).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(expected)


def test_counts_per_query_broadcast_over_the_batch():
    counts = [[1, 0, 7, 2, 4]]
    expected = evaluate(lambda b, q, k: k < counts[0][q], BATCH, QUERIES, KEYS)
    assert lengths(counts).to_tensor(QUERIES, KEYS, (BATCH,)).equal(expected)


def test_causal_or_prefix_is_a_prefix_language_model():
    expected = evaluate(lambda b, q, k: k <= q or k < [2, 4][b], BATCH, KEYS, KEYS)
    assert (causal() | prefix([2, 4])).to_tensor(KEYS, batch=(BATCH,)).equal(expected)


@every_rank
def test_padding_allows_the_keys_to_keep(batch, without_head):
    keep = integers(2, *without_head, KEYS).bool()

    def is_kept(*at):
        return bool(keep[(*at[: len(without_head)], at[-1])])

    expected = evaluate(is_kept, *batch, QUERIES, KEYS)
    assert padding(keep).to_tensor(QUERIES, KEYS, batch).equal(expected)


def test_padding_of_one_axis_holds_for_every_batch_item():
    keep = [True, False, True, True, False, False, True]
    expected = evaluate(lambda b, h, q, k: keep[k], BATCH, HEADS, QUERIES, KEYS)
    assert padding(keep).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(expected)
    assert padding([keep, keep]).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(expected)


@every_rank
def test_documents_attend_only_to_themselves(batch, without_head):
    ids = integers(3, *without_head, KEYS)

    def is_same(*at):
        own = ids[at[: len(without_head)]]
        return bool(own[at[-2]] == own[at[-1]])

    expected = evaluate(is_same, *batch, KEYS, KEYS)
    assert documents(ids).to_tensor(KEYS, batch=batch).equal(expected)


@pytest.mark.parametrize("ids", [[0, 0, 1], [[0, 0, 1], [2, 1, 2]]])
def test_document_ids_may_be_lists(ids):
    expected = documents(torch.tensor(ids)).to_tensor(3, batch=(BATCH,))
    assert documents(ids).to_tensor(3, batch=(BATCH,)).equal(expected)


def test_keys_may_have_document_ids_of_their_own():
    ids, key_ids = integers(3, BATCH, QUERIES), integers(3, BATCH, KEYS)
    expected = evaluate(
        lambda b, h, q, k: bool(ids[b, q] == key_ids[b, k]), BATCH, HEADS, QUERIES, KEYS
    )
    assert documents(ids, key_ids).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(expected)


@pytest.mark.parametrize("offset", [0, 1, 5])
def test_documents_with_offset_have_the_rows_of_the_whole_mask(offset):
    ids = integers(3, BATCH, KEYS)
    rows = 2
    mask = documents(ids)
    shape = AttentionShape(rows, KEYS, (BATCH, HEADS), offset)
    mask.check(shape)
    whole = mask.to_tensor(KEYS, batch=(BATCH, HEADS))
    assert (
        mask.materialize(shape)
        .expand(shape.score_shape)
        .equal(whole[..., offset : offset + rows, :])
    )


def test_documents_with_key_ids_ignore_the_offset():
    ids, key_ids = integers(3, BATCH, 2), integers(3, BATCH, KEYS)
    mask = documents(ids, key_ids)
    shape = AttentionShape(2, KEYS, (BATCH,), offset=5)
    mask.check(shape)
    assert mask.materialize(shape).equal(mask.to_tensor(2, KEYS, (BATCH,)))


@pytest.mark.parametrize(
    "mask", ["lengths(3)", "lengths([3, 2])", "prefix([0, 4, 1])", "prefix(7)", "lengths([])"]
)
def test_repr_of_few_counts_evaluates_to_the_mask(mask):
    assert repr(eval(mask, vars(masks))) == mask


def test_repr_of_many_values_shows_their_sizes():
    assert repr(lengths(torch.ones(9).long())) == "lengths(9 values)"
    assert repr(lengths([[1, 2], [3, 4]])) == "lengths(2 × 2)"
    assert repr(padding(torch.ones(2, 7).bool())) == "padding(2 × 7)"
    assert repr(documents([0, 1, 1])) == "documents(3 values)"
    assert repr(documents(integers(2, 2, 5), integers(2, 2, 7))) == "documents(2 × 5, 2 × 7)"


def test_explain_names_the_mask():
    assert lengths([3, 2]).explain(0, 2) == "query 0 may attend to key 2"
    expected = "query 0 may not attend to key 2: masked by lengths([3, 2])"
    assert lengths([3, 2]).explain(0, 2, batch=1) == expected
    assert prefix(1).explain(4, 1).endswith("masked by prefix(1)")
    assert padding([[True, False]]).explain(0, 1).endswith("masked by padding(1 × 2)")
    assert documents([0, 0, 1]).explain(1, 2).endswith("masked by documents(3 values)")


def test_explain_uses_the_row_of_its_query_and_batch_item():
    per_query = lengths([[1, 2, 3], [3, 0, 1]])
    assert "may attend" in per_query.explain(2, 2)
    assert "may not attend" in per_query.explain(2, 2, batch=1)
    ids = documents([0, 0, 1, 1])
    assert "may not attend" in ids.explain(0, 2)
    assert "may attend" in ids.explain(0, 2, offset=3), "query 0 is at key 3"


@pytest.mark.parametrize(("name", "mask"), [("lengths", lengths), ("prefix", prefix)])
def test_negative_counts_are_refused(name, mask):
    with pytest.raises(RegardError, match=f"{name} must be 0 or more, but one is -2"):
        mask([3, -2])


@pytest.mark.parametrize("counts", [1.5, [1.0, 2.0], torch.tensor([True])])
def test_counts_that_are_not_integers_are_refused(counts, unchecked):
    with pytest.raises(TypeError, match="lengths must be integers, but they are torch"):
        lengths(counts)


def test_lengths_beyond_the_number_of_keys_are_refused():
    with pytest.raises(RegardError, match="at most 7, the number of keys, but one is 8"):
        lengths([8, 1]).to_tensor(QUERIES, KEYS, (BATCH,))


def test_prefix_may_exceed_the_number_of_keys():
    assert prefix(8).to_tensor(QUERIES, KEYS).all()


def test_counts_of_another_batch_or_query_size_are_refused():
    with pytest.raises(RegardError, match=r"lengths must have the shape \(2,\).*\(3,\)"):
        lengths([1, 2, 3]).to_tensor(QUERIES, KEYS, (BATCH, HEADS))
    with pytest.raises(RegardError, match=r"prefix must have the shape \(2, 5\).*\(2, 4\)"):
        prefix(integers(3, 2, 4)).to_tensor(QUERIES, KEYS, (BATCH, HEADS))


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (torch.ones(2, 7), "keep must be boolean.*float32.*bias="),
        (torch.ones(2, 7).long(), r"keep must be boolean.*int64; pass keep\.bool\(\)"),
    ],
)
def test_padding_that_is_not_boolean_is_refused(keep, message):
    with pytest.raises(TypeError, match=message):
        padding(keep)


def test_padding_and_documents_of_another_size_are_refused():
    with pytest.raises(RegardError, match=r"keep must have the shape \(2, 7\).*\(2, 5\)"):
        padding(torch.ones(2, 5).bool()).to_tensor(QUERIES, KEYS, (BATCH,))
    with pytest.raises(RegardError, match=r"ids must have the shape \(2, 5\).*\(2, 7\)"):
        documents(integers(3, 2, 7)).to_tensor(QUERIES, KEYS, (BATCH,))
    with pytest.raises(RegardError, match=r"key_ids must have the shape \(2, 7\).*\(2, 6\)"):
        documents(integers(3, 2, 5), integers(3, 2, 6)).to_tensor(QUERIES, KEYS, (BATCH,))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("ids", documents),
        ("key_ids", lambda ids: documents([0], ids)),
        ("lengths", lengths),
        ("prefix", prefix),
        ("keep", padding),
    ],
)
def test_lists_of_unequal_lengths_are_refused(name, make):
    with pytest.raises(RegardError, match=f"{name} must be a tensor, or lists .* equal lengths"):
        make([[True, True], [True]] if name == "keep" else [[0, 1], [0]])
