import numpy as np
import pytest

from regard.analysis import head_statistics, head_table
from regard.trace import AttentionMap, TokenList, Trace, summarize

SIZE = 6


def banded(offset):
    """Attend to the key at an offset, or to the query's own position where there is none."""
    weights = np.full((SIZE, SIZE), 0.02)
    for query in range(SIZE):
        weights[query, query + offset if 0 <= query + offset < SIZE else query] = 0.9
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
    attention_map = AttentionMap(
        name="layer", kind=kind, queries="text", keys="text", weights=np.stack(weights)
    )
    return Trace(tokens={"text": tokens}, maps=(attention_map,))


def statistics_of(trace):
    return head_statistics(trace, trace.maps[0])


@pytest.mark.parametrize("is_summary", [False, True])
def test_each_role_is_recognised(is_summary):
    trace = trace_of(list(HEADS.values()))
    trace = summarize(trace) if is_summary else trace
    assert statistics_of(trace).roles == tuple(HEADS)


def test_cross_attention_has_no_positional_roles():
    roles = statistics_of(trace_of(list(HEADS.values()), kind="cross")).roles
    assert not {"previous", "following", "itself"} & set(roles)
    assert roles[3:] == ("sink", "flat", "sharp", "mixed")


def test_statistics_of_a_case_worked_by_hand():
    weights = np.zeros((1, SIZE, SIZE))
    weights[0, :, 0], weights[0, :, 1] = 0.75, 0.25
    statistics = statistics_of(trace_of(weights))
    assert statistics.entropy[0] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert statistics.normalized_entropy[0] == pytest.approx(statistics.entropy[0] / np.log(SIZE))
    assert statistics.sink[0] == pytest.approx(0.75) and statistics.sink_key[0] == 0
    assert statistics.itself[0] == pytest.approx((0.75 + 0.25) / SIZE)
    assert statistics.previous[0] == pytest.approx((0.75 + 0.25) / SIZE)
    assert statistics.following[0] == pytest.approx(0.25 / SIZE)
    distance = np.mean([0.75 * query + 0.25 * abs(query - 1) for query in range(SIZE)])
    assert statistics.distance[0] == pytest.approx(distance)


def test_padding_and_fully_masked_queries_do_not_count():
    small = np.random.default_rng(0).dirichlet(np.ones(4), (3, 4))
    short_map = AttentionMap(name="layer", kind="self", queries="text", keys="text", weights=small)
    short = Trace(tokens={"text": TokenList(tuple("abcd"))}, maps=(short_map,))
    expected = statistics_of(short)
    weights = np.zeros((3, SIZE, SIZE))
    weights[:, :4, :4] = small
    weights[:, 4:] = 1 / SIZE  # padding that attends to everything
    statistics = statistics_of(trace_of(weights, padding=(4, 5)))
    for name in expected._fields[:-1]:
        np.testing.assert_allclose(getattr(statistics, name), getattr(expected, name), err_msg=name)
    assert statistics.roles == expected.roles
    weights[:, 4:] = 0
    np.testing.assert_allclose(statistics_of(trace_of(weights)).entropy, expected.entropy)


def test_causal_head_is_flat_if_uniform_over_the_keys_it_sees():
    weights = np.tril(np.ones((1, SIZE, SIZE)))
    weights /= weights.sum(-1, keepdims=True)
    assert statistics_of(trace_of(weights, "causal")).normalized_entropy[0] > 0.8
    assert statistics_of(trace_of(weights)).normalized_entropy[0] < 0.7


def test_causal_queries_after_the_last_key_see_all_keys():
    weights = np.full((1, SIZE, 2), 0.5)
    tokens = {"text": TokenList(tuple("abcdef")), "keys": TokenList(("a", "b"))}
    attention_map = AttentionMap(
        name="layer", kind="causal", queries="text", keys="keys", weights=weights
    )
    trace = Trace(tokens=tokens, maps=(attention_map,))
    assert statistics_of(trace).normalized_entropy[0] == pytest.approx(1)


def test_table_has_one_line_per_head():
    lines = head_table(trace_of(list(HEADS.values()))).splitlines()
    assert lines[0].split() == [
        *("module", "call", "kind", "head", "role", "norm_entropy", "distance", "sink"),
    ]
    assert [line.split()[4] for line in lines[1:]] == list(HEADS)
