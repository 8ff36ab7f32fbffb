import numpy as np
import pytest

from regard.analysis import heads, table
from regard.trace import AttentionMap, TokenList, Trace, summarize

SIZE = 6


def banded(step):
    """Look at the key `step` ahead, or at itself where there is none."""
    weights = np.full((SIZE, SIZE), 0.02)
    for query in range(SIZE):
        weights[query, query + step if 0 <= query + step < SIZE else query] = 0.9
    return weights / weights.sum(-1, keepdims=True)


def column(key):
    weights = np.full((SIZE, SIZE), 0.05)
    weights[:, key] = 1
    return weights / weights.sum(-1, keepdims=True)


HEADS = {
    "previous": banded(-1),
    "following": banded(1),
    "itself": banded(0),
    "sink": column(2),
    "flat": np.full((SIZE, SIZE), 1 / SIZE),
    "sharp": np.eye(SIZE)[[3, 0, 5, 1, 2, 4]],
    "mixed": np.eye(SIZE)[[3, 0, 5, 1, 2, 4]] * 0.5 + 0.5 / SIZE,
}


def trace_of(weights, kind="self", padding=()):
    tokens = TokenList(tuple("abcdef"), padding=padding)
    look = AttentionMap(
        name="layer", kind=kind, queries="text", keys="text", weights=np.stack(weights)
    )
    return Trace(tokens={"text": tokens}, maps=(look,))


@pytest.mark.parametrize("small", [False, True])
def test_every_role_is_named(small):
    trace = trace_of(list(HEADS.values()))
    trace = summarize(trace) if small else trace
    assert heads(trace, trace.maps[0]).roles == tuple(HEADS)


def test_between_two_texts_positions_name_no_role():
    trace = trace_of(list(HEADS.values()), kind="cross")
    roles = heads(trace, trace.maps[0]).roles
    assert not {"previous", "following", "itself"} & set(roles)
    assert roles[3:] == ("sink", "flat", "sharp", "mixed")


def test_numbers_by_hand():
    weights = np.zeros((1, SIZE, SIZE))
    weights[0, :, 0], weights[0, :, 1] = 0.75, 0.25
    trace = trace_of(weights)
    found = heads(trace, trace.maps[0])
    assert found.entropy[0] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert found.flatness[0] == pytest.approx(found.entropy[0] / np.log(SIZE))
    assert found.sink[0] == pytest.approx(0.75) and found.sink_key[0] == 0
    assert found.itself[0] == pytest.approx((0.75 + 0.25) / SIZE)
    assert found.previous[0] == pytest.approx((0.75 + 0.25) / SIZE)
    assert found.following[0] == pytest.approx(0.25 / SIZE)
    away = np.mean([0.75 * query + 0.25 * abs(query - 1) for query in range(SIZE)])
    assert found.distance[0] == pytest.approx(away)


def test_padding_and_queries_that_look_nowhere_do_not_count():
    small = np.random.default_rng(0).dirichlet(np.ones(4), (3, 4))
    look = AttentionMap(name="layer", kind="self", queries="text", keys="text", weights=small)
    short = Trace(tokens={"text": TokenList(tuple("abcd"))}, maps=(look,))
    expected = heads(short, look)
    whole = np.zeros((3, SIZE, SIZE))
    whole[:, :4, :4] = small
    whole[:, 4:] = 1 / SIZE  # padding that looks at everything
    padded = trace_of(whole, padding=(4, 5))
    found = heads(padded, padded.maps[0])
    for name in expected._fields[:-1]:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.roles == expected.roles
    whole[:, 4:] = 0
    empty = trace_of(whole)
    np.testing.assert_allclose(heads(empty, empty.maps[0]).entropy, expected.entropy)


def test_a_causal_head_that_looks_at_all_before_it_is_flat():
    weights = np.tril(np.ones((1, SIZE, SIZE)))
    weights /= weights.sum(-1, keepdims=True)
    causal, plain = trace_of(weights, "causal"), trace_of(weights)
    assert heads(causal, causal.maps[0]).flatness[0] > 0.8
    assert heads(plain, plain.maps[0]).flatness[0] < 0.7


def test_the_table_has_a_line_for_each_head():
    lines = table(trace_of(list(HEADS.values()))).splitlines()
    assert lines[0].split() == [
        *("site", "call", "kind", "head", "role", "flatness", "distance", "sink"),
    ]
    assert [line.split()[4] for line in lines[1:]] == list(HEADS)


def test_queries_behind_all_keys_see_all_of_them():
    weights = np.full((1, SIZE, 2), 0.5)
    tokens = {"text": TokenList(tuple("abcdef")), "keys": TokenList(("a", "b"))}
    look = AttentionMap(name="layer", kind="causal", queries="text", keys="keys", weights=weights)
    found = heads(Trace(tokens=tokens, maps=(look,)), look)
    assert found.flatness[0] == pytest.approx(1)
