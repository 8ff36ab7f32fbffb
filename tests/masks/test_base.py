from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import masks
from regard.errors import RegardError
from regard.masks import (
    AttentionShape,
    Mask,
    as_mask,
    causal,
    documents,
    lengths,
    padding,
    prefix,
    window,
)

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7
SHAPE = AttentionShape(QUERIES, KEYS, (BATCH, HEADS))

torch.manual_seed(0)
KINDS = {
    "causal": causal("last"),
    "causal_each": causal([4, 1]),
    "window": window(1, ahead=2, align="first"),
    "lengths": lengths([3, 6]),
    "lengths_each": lengths(torch.randint(KEYS, (BATCH, QUERIES))),
    "padding": padding(torch.rand(BATCH, KEYS) > 0.4),
    "documents": documents(torch.randint(3, (BATCH, QUERIES)), torch.randint(3, (BATCH, KEYS))),
    "prefix": prefix(2),
    "tensor": as_mask(torch.rand(BATCH, HEADS, QUERIES, KEYS) > 0.4),
    "nothing": lengths(0),
    "everything": ~lengths(0),
    "unmasked": causal(align=KEYS),
}
TENSORS = {name: mask.to_tensor(QUERIES, KEYS, (BATCH, HEADS)) for name, mask in KINDS.items()}
REPRS = ["causal()", "causal(align='last')", "causal(align=[1, 2])", "window(2, ahead=0)"]
REPRS += ["lengths([3, 6])", "prefix(2)"]


def expressions(names):
    """Combine names with & | ~, each operand in brackets."""
    return st.recursive(
        st.sampled_from(sorted(names)),
        lambda part: (
            part.map("~({})".format)
            | st.tuples(part, st.sampled_from("&|"), part).map(lambda x: "({}) {} ({})".format(*x))
        ),
        max_leaves=6,
    )


def materialize(mask, shape=SHAPE):
    rows = shape.queries if shape.row_count is None else shape.row_count
    return mask.materialize(shape).expand(*shape.batch, rows, shape.keys)


@given(expressions(KINDS))
def test_combined_masks_are_boolean_algebra(text):
    mask = eval(text, dict(KINDS))
    mask.check(SHAPE)
    assert materialize(mask).equal(eval(text, dict(TENSORS)))


@given(expressions(KINDS), st.integers(0, QUERIES - 1), st.data())
def test_selected_rows_are_rows_of_the_whole_mask(text, start, data):
    rows = data.draw(st.integers(1, QUERIES - start))
    mask = eval(text, dict(KINDS))
    part = materialize(mask, SHAPE.with_rows(start, rows))
    assert part.equal(materialize(mask)[..., start : start + rows, :])


@given(expressions(KINDS), st.integers(0, QUERIES - 1))
def test_mask_that_is_all_true_materializes_to_true(text, start):
    mask, part = eval(text, dict(KINDS)), SHAPE.with_rows(start, 1)
    assert not mask.is_all_true(part) or materialize(mask, part).all()


@given(expressions(REPRS))
def test_repr_evaluates_to_the_mask(text):
    mask = eval(text, vars(masks))
    again = eval(repr(mask), vars(masks))
    assert again.to_tensor(KEYS, batch=(BATCH,)).equal(mask.to_tensor(KEYS, batch=(BATCH,)))
    assert repr(again) == repr(mask)


@pytest.mark.parametrize(
    "text",
    [
        "causal() & lengths([3, 2])",
        "~causal() | prefix(2)",
        "(causal() | prefix(2)) & ~window(0)",
        "causal() & prefix(2) | ~(window(0) & lengths(3))",
        "~(causal() | prefix(2)) & lengths(1)",
        "~~causal()",
    ],
)
def test_repr_has_brackets_only_where_they_are_needed(text):
    assert repr(eval(text, vars(masks))) == text


@given(
    expressions(KINDS),
    st.tuples(*(st.integers(0, size - 1) for size in (BATCH, HEADS, QUERIES, KEYS))),
)
def test_explain_agrees_with_the_materialized_mask(text, pair):
    batch, head, query, key = pair
    mask = eval(text, dict(KINDS))
    sentence = mask.explain(query, key, batch=batch, head=head, offset=KEYS - QUERIES)
    verb = "may attend" if materialize(mask)[pair] else "may not attend"
    assert sentence.startswith(f"query {query} {verb} to key {key}")


def test_explain_names_every_operand_of_and_that_masks():
    parts = [causal(), lengths([3, 2]), ~window(0), documents([0, 0, 1, 1, 0])]
    mask = parts[0] & parts[1] & (parts[2] & parts[3])
    alone = {repr(part): part.to_tensor(5, batch=(BATCH,)) for part in parts}
    for batch, query, key in product(range(BATCH), range(5), range(5)):
        masking = [name for name, tensor in alone.items() if not tensor[batch, query, key]]
        sentence = mask.explain(query, key, batch=batch)
        _, _, names = sentence.partition(": masked by ")
        assert names == " and ".join(masking), sentence


def test_explain_names_or_and_not_as_a_whole():
    either = causal() | prefix(2)
    assert either.explain(0, 2).endswith("masked by causal() | prefix(2)")
    neither = ~(causal() | prefix(2))
    assert neither.explain(0, 1).endswith("masked by ~(causal() | prefix(2))")


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_explain_indexes_a_tensor_mask(axes):
    shape, index = {
        2: ((QUERIES, KEYS), (4, 6)),
        3: ((BATCH, QUERIES, KEYS), (1, 4, 6)),
        4: ((BATCH, HEADS, QUERIES, KEYS), (1, 2, 4, 6)),
    }[axes]
    pairs = torch.ones(shape).bool()
    pairs[index] = False
    mask = as_mask(pairs)
    assert mask.explain(4, 6, batch=1, head=2).endswith(f"masked by {mask!r}")
    assert mask.explain(4, 5, batch=1, head=2) == "query 4 may attend to key 5"


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (
            {"query": 5, "key": 0},
            r"query must be from 0 to 4 in mask\(2 × 1 × 5 × 7\), but it is 5",
        ),
        ({"query": 0, "key": 7}, "key must be from 0 to 6 in"),
        ({"query": 0, "key": 0, "batch": 2}, "batch must be from 0 to 1 in"),
        ({"query": -1, "key": 0}, "query must be from 0 to 4 in .*, but it is -1"),
    ],
)
def test_explain_refuses_an_index_out_of_range(index, message):
    mask = as_mask(torch.ones(BATCH, 1, QUERIES, KEYS).bool())
    with pytest.raises(RegardError, match=message):
        (mask & prefix(KEYS)).explain(**index)
    assert mask.explain(0, 0, head=9) == "query 0 may attend to key 0", "one head holds for all"


TENSOR_SHAPES = [  # the scores' batch axes, the mask's shape, and a pair's index in the mask
    ((), (5, 7), lambda at: at),
    ((2,), (5, 7), lambda at: at[1:]),
    ((2,), (2, 5, 7), lambda at: at),
    ((2,), (2, 1, 7), lambda at: (at[0], 0, at[2])),
    ((2, 3), (5, 7), lambda at: at[2:]),
    ((2, 3), (2, 5, 7), lambda at: (at[0], *at[2:])),
    ((2, 3), (2, 3, 5, 7), lambda at: at),
    ((2, 3), (1, 3, 5, 7), lambda at: (0, *at[1:])),
    ((4, 2, 3), (5, 7), lambda at: at[3:]),
    ((4, 2, 3), (4, 2, 5, 7), lambda at: (*at[:2], *at[3:])),
    ((4, 2, 3), (4, 2, 3, 5, 7), lambda at: at),
]


@pytest.mark.parametrize(("batch", "shape", "index"), TENSOR_SHAPES)
def test_tensor_mask_is_aligned_with_the_scores(batch, shape, index):
    pairs = torch.rand(shape) > 0.5
    allowed = as_mask(pairs).to_tensor(QUERIES, KEYS, batch)
    for at in product(*map(range, (*batch, QUERIES, KEYS))):
        assert allowed[at] == pairs[index(at)], at


@pytest.mark.usefixtures("unchecked")
def test_number_as_batch_axes_is_refused_by_name():
    with pytest.raises(TypeError, match=r"batch must be the sizes of the batch axes, such as \(2,"):
        causal().to_tensor(QUERIES, batch=2)


def test_tensor_may_be_either_operand():
    pairs = torch.rand(KEYS, KEYS) > 0.5
    behind = torch.ones(KEYS, KEYS).tril().bool()
    assert (causal() & pairs).to_tensor(KEYS).equal(behind & pairs)
    assert (pairs & causal()).to_tensor(KEYS).equal(behind & pairs)
    assert (causal() | pairs).to_tensor(KEYS).equal(behind | pairs)
    assert (pairs | causal()).to_tensor(KEYS).equal(behind | pairs)
    assert repr(pairs & causal()) == "mask(7 × 7) & causal()"
    assert repr(causal() | pairs) == "causal() | mask(7 × 7)"


def test_as_mask_returns_a_mask_unchanged():
    mask = causal()
    assert as_mask(mask) is mask


OPERATIONS = [as_mask, lambda x: causal() & x, lambda x: x & causal(), lambda x: x | causal()]
OPERATIONS += [lambda x: causal() | x]


@pytest.mark.parametrize("combine", OPERATIONS)
@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.zeros(5, 7), "mask must be boolean.*but it is torch.float32.*as bias="),
        (torch.ones(5, 7).long(), r"mask must be boolean.*torch.int64; pass mask\.bool\(\)"),
        ([[True]], r"a mask or a boolean tensor, but it is of type list; regard\.masks has"),
    ],
    ids=["float", "int", "list"],
)
def test_mask_that_is_not_boolean_is_refused(combine, mask, message, unchecked):
    with pytest.raises(TypeError, match=message):
        combine(mask)


@pytest.mark.parametrize(
    ("shape", "batch", "message"),
    [
        ((7,), (), r"mask must have 2 axes.*\(7,\); the scores are \(5, 7\)"),
        ((2, 5, 7), (), "mask must have 2 axes"),
        ((2, 3, 5, 7), (2,), "mask must have 2 or 3 axes"),
        ((1, 2, 3, 5, 7), (2, 3), "mask must have 2 or 3 or 4 axes"),
        ((7, 5), (2, 3), r"broadcast to \(2, 3, 5, 7\).*\(7, 5\)"),
        ((2, 7), (2, 3), r"broadcast to.*pass a \(batch, key\) mask as padding\(keep\)"),
        ((3, 5, 7), (2, 3), r"broadcast to \(2, 3, 5, 7\).*\(3, 5, 7\)"),
    ],
)
@pytest.mark.parametrize("wrap", [as_mask, lambda x: ~as_mask(x), lambda x: prefix(1) | x])
def test_tensor_mask_of_a_wrong_shape_is_refused(wrap, shape, batch, message):
    with pytest.raises(RegardError, match=message):
        wrap(torch.ones(shape).bool()).to_tensor(QUERIES, KEYS, batch)


class Even(Mask):
    """A user's mask: even keys only."""

    def materialize(self, shape):
        return shape.key_positions() % 2 == 0

    def __repr__(self):
        return "Even()"


def test_custom_mask_needs_only_materialize():
    expected = torch.ones(KEYS, KEYS).tril().bool() & (torch.arange(KEYS) % 2 == 0)
    assert (causal() & Even()).to_tensor(KEYS).equal(expected)
    assert (causal() & Even()).explain(3, 1).endswith("masked by Even()")


def test_mask_without_materialize_asks_for_it():
    with pytest.raises(NotImplementedError, match="Mask must implement materialize"):
        Mask().to_tensor(KEYS)


class AllTrue(Mask):
    """A mask that is all true, and cannot be materialized."""

    def is_all_true(self, shape):
        return True


@pytest.mark.parametrize("combine", [lambda mask: AllTrue() & mask, lambda mask: mask & AllTrue()])
def test_operand_that_is_all_true_is_not_materialized(combine):
    assert combine(window(1)).to_tensor(KEYS).equal(window(1).to_tensor(KEYS))


def test_is_all_true_follows_the_operators():
    shape = AttentionShape(KEYS, KEYS)
    true, other = AllTrue(), causal()
    assert (true & true).is_all_true(shape)
    assert not (true & other).is_all_true(shape)
    assert not (other & true).is_all_true(shape)
    assert (true | other).is_all_true(shape)
    assert (other | true).is_all_true(shape)
    assert not (other | other).is_all_true(shape)
    assert not (~true).is_all_true(shape)


def test_to_tensor_has_the_shape_of_the_scores():
    assert prefix(1).to_tensor(5).shape == (5, 5)
    assert prefix(1).to_tensor(5, 7).shape == (5, 7)
    assert prefix(1).to_tensor(5, 7, (2, 3)).shape == (2, 3, 5, 7)


@pytest.mark.parametrize("combine", [lambda a, b: a and b, lambda a, b: a or b, lambda a, b: not a])
def test_truth_value_of_a_mask_is_refused(combine):
    with pytest.raises(
        TypeError, match=r"causal\(\) has no truth value.*combine masks with &, \| and ~"
    ):
        combine(causal(), lengths([3, 2]))
