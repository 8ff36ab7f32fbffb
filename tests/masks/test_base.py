from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import masks
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
FRAME = AttentionShape(QUERIES, KEYS, (BATCH, HEADS))

torch.manual_seed(0)
KINDS = {
    "behind": causal("last"),
    "behind_each": causal([4, 1]),
    "near": window(1, ahead=2, align="first"),
    "short": lengths([3, 6]),
    "short_each": lengths(torch.randint(KEYS, (BATCH, QUERIES))),
    "kept": padding(torch.rand(BATCH, KEYS) > 0.4),
    "alike": documents(torch.randint(3, (BATCH, QUERIES)), torch.randint(3, (BATCH, KEYS))),
    "begun": prefix(2),
    "pairs": as_mask(torch.rand(BATCH, HEADS, QUERIES, KEYS) > 0.4),
    "nothing": lengths(0),
    "everything": ~lengths(0),
    "is_all_true": causal(align=KEYS),
}
WRITTEN = {name: mask.to_tensor(QUERIES, KEYS, (BATCH, HEADS)) for name, mask in KINDS.items()}
SHOWN = ["causal()", "causal(align='last')", "causal(align=[1, 2])", "window(2, ahead=0)"]
SHOWN += ["lengths([3, 6])", "prefix(2)"]


def expressions(names):
    """Join names with & | ~, each part in brackets, so that the text says how they are joined."""
    return st.recursive(
        st.sampled_from(sorted(names)),
        lambda part: (
            part.map("~({})".format)
            | st.tuples(part, st.sampled_from("&|"), part).map(lambda x: "({}) {} ({})".format(*x))
        ),
        max_leaves=6,
    )


def written(mask, frame=FRAME):
    whole = mask.materialize(frame)
    rows = frame.queries if frame.row_count is None else frame.row_count
    return whole.expand(*frame.batch, rows, frame.keys)


@given(expressions(KINDS))
def test_joined_masks_are_boolean_algebra(text):
    mask = eval(text, dict(KINDS))
    mask.check(FRAME)
    assert written(mask).equal(eval(text, dict(WRITTEN)))


@given(expressions(KINDS), st.integers(0, QUERIES - 1), st.data())
def test_a_part_has_the_rows_of_the_whole(text, first, data):
    rows = data.draw(st.integers(1, QUERIES - first))
    mask = eval(text, dict(KINDS))
    part = written(mask, FRAME.with_rows(first, rows))
    assert part.equal(written(mask)[..., first : first + rows, :])


@given(expressions(KINDS), st.integers(0, QUERIES - 1))
def test_a_mask_that_says_it_hides_nothing_hides_nothing(text, first):
    mask, part = eval(text, dict(KINDS)), FRAME.with_rows(first, 1)
    assert not mask.is_all_true(part) or written(mask, part).all()


@given(expressions(SHOWN))
def test_the_repr_reads_like_the_expression_and_can_be_read_back(text):
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
def test_the_repr_has_brackets_only_where_they_are_needed(text):
    assert repr(eval(text, vars(masks))) == text


@given(
    expressions(KINDS),
    st.tuples(*(st.integers(0, size - 1) for size in (BATCH, HEADS, QUERIES, KEYS))),
)
def test_explain_agrees_with_what_is_written_out(text, pair):
    sentence, head, query, key = pair
    mask = eval(text, dict(KINDS))
    said = mask.explain(query, key, batch=sentence, head=head, offset=KEYS - QUERIES)
    look = "may look" if written(mask)[pair] else "may not look"
    assert said.startswith(f"query {query} {look} at key {key}")


def test_explain_names_every_part_that_hides():
    parts = [causal(), lengths([3, 2]), ~window(0), documents([0, 0, 1, 1, 0])]
    mask = parts[0] & parts[1] & (parts[2] & parts[3])
    alone = {repr(part): part.to_tensor(5, batch=(BATCH,)) for part in parts}
    for sentence, query, key in product(range(BATCH), range(5), range(5)):
        hiding = [name for name, seen in alone.items() if not seen[sentence, query, key]]
        said = mask.explain(query, key, batch=sentence)
        _, _, named = said.partition(": hidden by ")
        assert named == " and ".join(hiding), said


def test_explain_names_a_choice_or_a_refusal_as_a_whole():
    either = causal() | prefix(2)
    assert either.explain(0, 2).endswith("hidden by causal() | prefix(2)")
    neither = ~(causal() | prefix(2))
    assert neither.explain(0, 1).endswith("hidden by ~(causal() | prefix(2))")


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_explain_finds_a_pair_in_a_plain_tensor(axes):
    shape, place = {
        2: ((QUERIES, KEYS), (4, 6)),
        3: ((BATCH, QUERIES, KEYS), (1, 4, 6)),
        4: ((BATCH, HEADS, QUERIES, KEYS), (1, 2, 4, 6)),
    }[axes]
    pairs = torch.ones(shape).bool()
    pairs[place] = False
    mask = as_mask(pairs)
    assert mask.explain(4, 6, batch=1, head=2).endswith(f"hidden by {mask!r}")
    assert mask.explain(4, 5, batch=1, head=2) == "query 4 may look at key 5"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({"query": 5, "key": 0}, r"query must be from 0 to 4 in mask\(2 × 1 × 5 × 7\), not 5"),
        ({"query": 0, "key": 7}, "key must be from 0 to 6 in"),
        ({"query": 0, "key": 0, "batch": 2}, "batch must be from 0 to 1 in"),
        ({"query": -1, "key": 0}, "query must be from 0 to 4 in .*, not -1"),
    ],
)
def test_explain_says_which_pairs_there_are(place, words):
    mask = as_mask(torch.ones(BATCH, 1, QUERIES, KEYS).bool())
    with pytest.raises(ValueError, match=words):
        (mask & prefix(KEYS)).explain(**place)
    assert mask.explain(0, 0, head=9) == "query 0 may look at key 0", "one head stands for all"


PLAIN = [  # the scores' batch axes, the mask's shape, and where the mask keeps a pair's place
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


@pytest.mark.parametrize(("batch", "shape", "place"), PLAIN)
def test_a_plain_tensor_lines_up_with_the_scores(batch, shape, place):
    pairs = torch.rand(shape) > 0.5
    seen = as_mask(pairs).to_tensor(QUERIES, KEYS, batch)
    for at in product(*map(range, (*batch, QUERIES, KEYS))):
        assert seen[at] == pairs[place(at)], at


def test_tensors_may_stand_on_either_side():
    pairs = torch.rand(KEYS, KEYS) > 0.5
    behind = torch.ones(KEYS, KEYS).tril().bool()
    assert (causal() & pairs).to_tensor(KEYS).equal(behind & pairs)
    assert (pairs & causal()).to_tensor(KEYS).equal(behind & pairs)
    assert (causal() | pairs).to_tensor(KEYS).equal(behind | pairs)
    assert (pairs | causal()).to_tensor(KEYS).equal(behind | pairs)
    assert repr(pairs & causal()) == "mask(7 × 7) & causal()"
    assert repr(causal() | pairs) == "causal() | mask(7 × 7)"


def test_a_mask_is_taken_as_it_is():
    mask = causal()
    assert as_mask(mask) is mask


JOINS = [as_mask, lambda x: causal() & x, lambda x: x & causal(), lambda x: x | causal()]
JOINS += [lambda x: causal() | x]


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (torch.zeros(5, 7), "mask must be boolean.*but it is torch.float32.*go in as bias="),
        (torch.ones(5, 7).long(), r"mask must be boolean.*torch.int64; mask\.bool\(\) would do"),
        ([[True]], r"mask must be a mask or a boolean tensor.*is a list; regard\.masks has"),
    ],
    ids=["float", "int", "list"],
)
def test_what_is_not_boolean_is_refused(join, mask, words, unchecked):
    with pytest.raises(TypeError, match=words):
        join(mask)


@pytest.mark.parametrize(
    ("shape", "batch", "words"),
    [
        ((7,), (), r"mask must have 2 axes.*\(7,\); the scores are \(5, 7\)"),
        ((2, 5, 7), (), "mask must have 2 axes"),
        ((2, 3, 5, 7), (2,), "mask must have 2 or 3 axes"),
        ((1, 2, 3, 5, 7), (2, 3), "mask must have 2 or 3 or 4 axes"),
        ((7, 5), (2, 3), r"broadcast to \(2, 3, 5, 7\).*\(7, 5\)"),
        ((2, 7), (2, 3), r"broadcast to.*\(batch, key\) mask goes in as padding\(keep\)"),
        ((3, 5, 7), (2, 3), r"broadcast to \(2, 3, 5, 7\).*\(3, 5, 7\)"),
    ],
)
@pytest.mark.parametrize("wrap", [as_mask, lambda x: ~as_mask(x), lambda x: prefix(1) | x])
def test_a_tensor_that_does_not_line_up_is_refused(wrap, shape, batch, words):
    with pytest.raises(ValueError, match=words):
        wrap(torch.ones(shape).bool()).to_tensor(QUERIES, KEYS, batch)


class Even(Mask):
    """Even keys only; as a reader might add a kind of mask."""

    def materialize(self, frame):
        return frame.key_positions() % 2 == 0

    def __repr__(self):
        return "Even()"


def test_a_new_kind_of_mask_needs_nothing_but_on():
    want = torch.ones(KEYS, KEYS).tril().bool() & (torch.arange(KEYS) % 2 == 0)
    assert (causal() & Even()).to_tensor(KEYS).equal(want)
    assert (causal() & Even()).explain(3, 1).endswith("hidden by Even()")


def test_a_mask_that_does_not_say_who_may_look_is_refused():
    with pytest.raises(TypeError, match="Mask does not say who may look; write its `on`"):
        Mask().to_tensor(KEYS)


class Unwritable(Mask):
    """A mask that hides nothing, and must not be asked for its pairs."""

    def is_all_true(self, frame):
        return True


@pytest.mark.parametrize(
    "join", [lambda mask: Unwritable() & mask, lambda mask: mask & Unwritable()]
)
def test_a_part_that_hides_nothing_is_never_written_out(join):
    assert join(window(1)).to_tensor(KEYS).equal(window(1).to_tensor(KEYS))


def test_joined_masks_hide_nothing_when_their_parts_do_not():
    frame = AttentionShape(KEYS, KEYS)
    clear, hiding = Unwritable(), causal()
    assert (clear & clear).is_all_true(frame)
    assert not (clear & hiding).is_all_true(frame)
    assert not (hiding & clear).is_all_true(frame)
    assert (clear | hiding).is_all_true(frame)
    assert (hiding | clear).is_all_true(frame)
    assert not (hiding | hiding).is_all_true(frame)
    assert not (~clear).is_all_true(frame)


def test_written_out_in_full_a_mask_has_the_shape_of_the_scores():
    assert prefix(1).to_tensor(5).shape == (5, 5)
    assert prefix(1).to_tensor(5, 7).shape == (5, 7)
    assert prefix(1).to_tensor(5, 7, (2, 3)).shape == (2, 3, 5, 7)


@pytest.mark.parametrize("join", [lambda a, b: a and b, lambda a, b: a or b, lambda a, b: not a])
def test_words_that_would_lose_a_part_of_a_mask_are_refused(join):
    with pytest.raises(TypeError, match=r"causal\(\) is neither true nor false.*&, \| and ~ join"):
        join(causal(), lengths([3, 2]))
