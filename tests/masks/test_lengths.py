from itertools import product

import pytest
import torch

from regard import masks
from regard.masks import AttentionShape, causal, documents, lengths, padding, prefix

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7
# the axes before (query, key), and those of them that count sentences
RANKS = [((2,), (2,)), ((2, 3), (2,)), ((4, 2, 3), (4, 2))]
every_rank = pytest.mark.parametrize(("batch", "sentences"), RANKS)


def pair_by_pair(rule, *shape):
    """Ask about each place of a shape, one after the other."""
    return torch.tensor([rule(*place) for place in product(*map(range, shape))]).reshape(shape)


def numbers(limit, *shape):
    return torch.randint(limit, shape)


@every_rank
@pytest.mark.parametrize("mask", [lengths, prefix])
def test_one_count_per_sentence_shows_its_first_keys(mask, batch, sentences):
    counts = numbers(KEYS + 1, *sentences)
    want = pair_by_pair(
        lambda *at: at[-1] < int(counts[at[: len(sentences)]]), *batch, QUERIES, KEYS
    )
    assert mask(counts).to_tensor(QUERIES, KEYS, batch).equal(want)


@every_rank
@pytest.mark.parametrize("mask", [lengths, prefix])
def test_one_count_per_query_shows_each_its_own(mask, batch, sentences):
    counts = numbers(KEYS + 1, *sentences, QUERIES)

    def shown(*at):
        return at[-1] < int(counts[(*at[: len(sentences)], at[-2])])

    want = pair_by_pair(shown, *batch, QUERIES, KEYS)
    assert mask(counts).to_tensor(QUERIES, KEYS, batch).equal(want)


def test_without_sentences_there_is_one_count_or_one_per_query():
    assert lengths(3).to_tensor(QUERIES, KEYS).equal(pair_by_pair(lambda q, k: k < 3, 5, 7))
    counts = [1, 0, 7, 2, 4]
    want = pair_by_pair(lambda q, k: k < counts[q], 5, 7)
    assert lengths(counts).to_tensor(QUERIES, KEYS).equal(want)


def test_one_count_holds_for_every_sentence():
    want = pair_by_pair(lambda b, h, q, k: k < 4, BATCH, HEADS, QUERIES, KEYS)
    for counts in (4, [4], torch.tensor(4)):
        assert lengths(counts).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(want)


def test_the_same_counts_per_query_may_hold_for_every_sentence():
    counts = [[1, 0, 7, 2, 4]]
    want = pair_by_pair(lambda b, q, k: k < counts[0][q], BATCH, QUERIES, KEYS)
    assert lengths(counts).to_tensor(QUERIES, KEYS, (BATCH,)).equal(want)


def test_causal_or_prefix_reads_the_beginning_at_once():
    want = pair_by_pair(lambda b, q, k: k <= q or k < [2, 4][b], BATCH, KEYS, KEYS)
    assert (causal() | prefix([2, 4])).to_tensor(KEYS, batch=(BATCH,)).equal(want)


@every_rank
def test_padding_shows_the_keys_to_keep(batch, sentences):
    keep = numbers(2, *sentences, KEYS).bool()

    def kept(*at):
        return bool(keep[(*at[: len(sentences)], at[-1])])

    want = pair_by_pair(kept, *batch, QUERIES, KEYS)
    assert padding(keep).to_tensor(QUERIES, KEYS, batch).equal(want)


def test_padding_of_one_axis_holds_for_every_sentence():
    keep = [True, False, True, True, False, False, True]
    want = pair_by_pair(lambda b, h, q, k: keep[k], BATCH, HEADS, QUERIES, KEYS)
    assert padding(keep).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(want)
    assert padding([keep, keep]).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(want)


@every_rank
def test_documents_see_only_themselves(batch, sentences):
    ids = numbers(3, *sentences, KEYS)

    def alike(*at):
        own = ids[at[: len(sentences)]]
        return bool(own[at[-2]] == own[at[-1]])

    want = pair_by_pair(alike, *batch, KEYS, KEYS)
    assert documents(ids).to_tensor(KEYS, batch=batch).equal(want)


@pytest.mark.parametrize("ids", [[0, 0, 1], [[0, 0, 1], [2, 1, 2]]])
def test_documents_may_be_numbered_in_lists(ids):
    want = documents(torch.tensor(ids)).to_tensor(3, batch=(BATCH,))
    assert documents(ids).to_tensor(3, batch=(BATCH,)).equal(want)


def test_documents_of_keys_may_be_numbered_apart():
    ids, key_ids = numbers(3, BATCH, QUERIES), numbers(3, BATCH, KEYS)
    want = pair_by_pair(
        lambda b, h, q, k: bool(ids[b, q] == key_ids[b, k]), BATCH, HEADS, QUERIES, KEYS
    )
    assert documents(ids, key_ids).to_tensor(QUERIES, KEYS, (BATCH, HEADS)).equal(want)


@pytest.mark.parametrize("offset", [0, 1, 5])
def test_documents_behind_a_cache_are_those_of_the_last_rows(offset):
    ids = numbers(3, BATCH, KEYS)
    rows = 2
    mask = documents(ids)
    frame = AttentionShape(rows, KEYS, (BATCH, HEADS), offset)
    mask.check(frame)
    whole = mask.to_tensor(KEYS, batch=(BATCH, HEADS))
    assert (
        mask.materialize(frame)
        .expand(frame.score_shape)
        .equal(whole[..., offset : offset + rows, :])
    )


def test_numbered_keys_are_not_moved_by_a_cache():
    ids, key_ids = numbers(3, BATCH, 2), numbers(3, BATCH, KEYS)
    mask = documents(ids, key_ids)
    frame = AttentionShape(2, KEYS, (BATCH,), offset=5)
    mask.check(frame)
    assert mask.materialize(frame).equal(mask.to_tensor(2, KEYS, (BATCH,)))


@pytest.mark.parametrize(
    "mask", ["lengths(3)", "lengths([3, 2])", "prefix([0, 4, 1])", "prefix(7)", "lengths([])"]
)
def test_the_repr_of_a_few_counts_can_be_read_back(mask):
    assert repr(eval(mask, vars(masks))) == mask


def test_the_repr_of_many_numbers_says_only_how_many():
    assert repr(lengths(torch.ones(9).long())) == "lengths(9 numbers)"
    assert repr(lengths([[1, 2], [3, 4]])) == "lengths(2 × 2)"
    assert repr(padding(torch.ones(2, 7).bool())) == "padding(2 × 7)"
    assert repr(documents([0, 1, 1])) == "documents(3 numbers)"
    assert repr(documents(numbers(2, 2, 5), numbers(2, 2, 7))) == "documents(2 × 5, 2 × 7)"


def test_explain_names_the_mask_that_hides():
    assert lengths([3, 2]).explain(0, 2) == "query 0 may look at key 2"
    hidden = "query 0 may not look at key 2: hidden by lengths([3, 2])"
    assert lengths([3, 2]).explain(0, 2, batch=1) == hidden
    assert prefix(1).explain(4, 1).endswith("hidden by prefix(1)")
    assert padding([[True, False]]).explain(0, 1).endswith("hidden by padding(1 × 2)")
    assert documents([0, 0, 1]).explain(1, 2).endswith("hidden by documents(3 numbers)")


def test_explain_reads_the_row_of_its_query():
    per_query = lengths([[1, 2, 3], [3, 0, 1]])
    assert "may look" in per_query.explain(2, 2)
    assert "may not look" in per_query.explain(2, 2, batch=1)
    ids = documents([0, 0, 1, 1])
    assert "may not look" in ids.explain(0, 2)
    assert "may look" in ids.explain(0, 2, offset=3), "query 0 stands on key 3"


@pytest.mark.parametrize(("word", "mask"), [("lengths", lengths), ("prefix", prefix)])
def test_negative_counts_are_refused(word, mask):
    with pytest.raises(ValueError, match=f"{word} must be 0 or more, but one is -2"):
        mask([3, -2])


@pytest.mark.parametrize("counts", [1.5, [1.0, 2.0], torch.tensor([True])])
def test_counts_that_are_not_whole_are_refused(counts, unchecked):
    with pytest.raises(TypeError, match="lengths must be whole numbers, but they are torch"):
        lengths(counts)


def test_lengths_beyond_the_keys_are_refused():
    with pytest.raises(ValueError, match="at most 7, the number of keys, but one is 8"):
        lengths([8, 1]).to_tensor(QUERIES, KEYS, (BATCH,))


def test_a_prefix_may_be_longer_than_the_keys():
    assert prefix(8).to_tensor(QUERIES, KEYS).all()


def test_counts_for_another_number_of_sentences_or_queries_are_refused():
    with pytest.raises(ValueError, match=r"lengths must have the shape \(2,\).*\(3,\)"):
        lengths([1, 2, 3]).to_tensor(QUERIES, KEYS, (BATCH, HEADS))
    with pytest.raises(ValueError, match=r"prefix must have the shape \(2, 5\).*\(2, 4\)"):
        prefix(numbers(3, 2, 4)).to_tensor(QUERIES, KEYS, (BATCH, HEADS))


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        (torch.ones(2, 7), "keep must be boolean.*float32.*bias="),
        (torch.ones(2, 7).long(), r"keep must be boolean.*int64; keep\.bool\(\) would do"),
    ],
)
def test_padding_that_is_not_boolean_is_refused(keep, words):
    with pytest.raises(TypeError, match=words):
        padding(keep)


def test_padding_and_documents_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"keep must have the shape \(2, 7\).*\(2, 5\)"):
        padding(torch.ones(2, 5).bool()).to_tensor(QUERIES, KEYS, (BATCH,))
    with pytest.raises(ValueError, match=r"ids must have the shape \(2, 5\).*\(2, 7\)"):
        documents(numbers(3, 2, 7)).to_tensor(QUERIES, KEYS, (BATCH,))
    with pytest.raises(ValueError, match=r"key_ids must have the shape \(2, 7\).*\(2, 6\)"):
        documents(numbers(3, 2, 5), numbers(3, 2, 6)).to_tensor(QUERIES, KEYS, (BATCH,))
